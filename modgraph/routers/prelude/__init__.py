"""The routers of the vocabulary, as text in the language: what stands in the files of this folder.

A definition has a comment before it: what it does and where it comes from, and perhaps `# Also called: …` with the
words of the field for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from modgraph.diagnostics import Source

HOME = Path(__file__).parent
DEFINITION = re.compile(r"((?:^#.*\n)*)^router (\w+)\b(?:.*\n)+?^}\n", re.MULTILINE)
BLOCK = re.compile(r"^block (\w+)\b(?:.*\n)+?^}\n", re.MULTILINE)
ALSO = "# Also called: "


@dataclass(frozen=True)
class Written:
    """One definition: its file, its text with the comment before it, other words for it."""

    name: str
    source: Source
    text: str
    synonyms: tuple[str, ...]

    @property
    def whole(self) -> str:
        """Its text, with the blocks of its file that it uses."""
        texts = [self.text]
        for text in texts:
            texts += [found[0] for found in BLOCK.finditer(self.source.text) if re.search(rf"-> {found[1]}\b", text)]
        return "\n".join(dict.fromkeys(texts))

    @property
    def signature(self) -> str:
        """`cosine(k=1, …)`."""
        head = next(line for line in self.text.splitlines() if line.startswith("router "))
        return head.removeprefix("router ").rpartition(" for ")[0]


@cache
def definitions() -> dict[str, Written]:
    """Every definition by name."""
    return {each.name: each for path in sorted(HOME.glob("*.mod")) for each in _in(path)}


def _in(path: Path) -> Iterator[Written]:
    source = Source(str(path), path.read_text(), f"<modgraph>/{path.name}")
    for found in DEFINITION.finditer(source.text):
        also = next((line for line in found[1].splitlines() if line.startswith(ALSO)), "")
        words = tuple(also.removeprefix(ALSO).rstrip(".").split(", ")) if also else ()
        yield Written(found[2], source, found[0], words)


def is_prelude(source: Source) -> bool:
    """Whether a text is one of these."""
    return source.name.startswith(str(HOME)) and any(each.source is source for each in definitions().values())
