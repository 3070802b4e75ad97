"""The routers of the vocabulary as text in the language: the definitions in the files of this folder.

The comment before a definition says what it does and cites its source. A line `# Also called: …` lists other names in
the field.
"""

from __future__ import annotations

import re
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
    """One definition: its file, its text with the comment before it, and its synonyms."""

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
        """Its signature, such as `cosine(k=1, …)`."""
        head = next(line for line in self.text.splitlines() if line.startswith("router "))
        return head.removeprefix("router ").rpartition(" for ")[0]


@cache
def definitions() -> dict[str, Written]:
    """Read every definition, by name."""
    found = {}
    for path in sorted(HOME.glob("*.mod")):
        source = Source(str(path), path.read_text(), f"<modgraph>/{path.name}")
        for each in DEFINITION.finditer(source.text):
            also = next((line for line in each[1].splitlines() if line.startswith(ALSO)), "")
            words = tuple(also.removeprefix(ALSO).rstrip(".").split(", ")) if also else ()
            found[each[2]] = Written(each[2], source, each[0], words)
    return found


def is_prelude(source: Source) -> bool:
    """Whether a text is one of these definitions."""
    return source.name.startswith(str(HOME)) and any(each.source is source for each in definitions().values())
