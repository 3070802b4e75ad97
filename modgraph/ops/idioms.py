"""Names from other libraries that are no op here: what to write in their place, or that no op does the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Idiom:
    """`code` has statements that compute y from x and mean the same as the words; `when` is a remark on them.

    Where no op does the same, `lacks` says what no op does; the code is then the nearest, if there is one, and `when`
    says how it differs. `x` is the type of x.
    """

    words: tuple[str, ...]
    code: str = ""
    when: str = ""
    lacks: str = ""
    x: str = "float[6, 8]"

    def help(self, name: str) -> str:
        """The help line for one of the words."""
        if not self.lacks:
            return f"there is no op {name}: write, for example, {self.code}" + (f" ({self.when})" if self.when else "")
        nearest = f"; nearest: {self.code}" if self.code else ""
        return f"no op here {self.lacks}{nearest}" + (f" ({self.when})" if self.when else "")


def _read(line: str) -> Idiom:
    words, *facts = (each.strip() for each in line.split("|"))
    return Idiom(tuple(words.split(", ")), *facts)


LINES = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
IDIOMS = tuple(_read(line) for line in LINES if line and not line.startswith("#"))
