"""Names from other libraries that are no op here, with equivalent code if there is any."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Idiom:
    """`code` has statements that compute y from x as the names do elsewhere; `when` is a remark.

    If no op is equivalent, `lacks` says what is missing, `code` is the nearest alternative if there is one, and `when`
    says how it differs. `x` is the type of x.
    """

    words: tuple[str, ...]
    code: str = ""
    when: str = ""
    lacks: str = ""
    x: str = "float[6, 8]"

    def help(self, name: str) -> str:
        """Return the help line for one of the names."""
        if not self.lacks:
            return f"there is no op {name}: write, for example, {self.code}" + (f" ({self.when})" if self.when else "")
        nearest = f"; nearest: {self.code}" if self.code else ""
        return f"no op here {self.lacks}{nearest}" + (f" ({self.when})" if self.when else "")


def _read(line: str) -> Idiom:
    words, *facts = (each.strip() for each in line.split("|"))
    return Idiom(tuple(words.split(", ")), *facts)


LINES = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
IDIOMS = tuple(_read(line) for line in LINES if line and not line.startswith("#"))
