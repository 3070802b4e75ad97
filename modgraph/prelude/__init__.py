"""The routers and blocks of the vocabulary as text in the language: the definitions in the files of these folders.

The comment before a definition says what it does and cites its source. A line `# Also called: …` lists other names in
the field, a line `# In torch: …` the arguments of torch's layer, as `torch_arguments` of an op does. Other blocks in
the files are parts of these definitions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from modgraph.diagnostics import Source

HOME = Path(__file__).parent
DEFINITION = re.compile(r"((?:^#.*\n)*)^(router|block) (\w+)\b(?:.*\n)+?^}\n", re.MULTILINE)
ALSO, IN_TORCH = "# Also called: ", "# In torch: "


@dataclass(frozen=True)
class Written:
    """One definition: its keyword, its file, and its text with the comment before it."""

    keyword: str
    name: str
    source: Source
    text: str

    @property
    def synonyms(self) -> tuple[str, ...]:
        """Its other names in the field."""
        also = self._find_line(ALSO)
        return tuple(also.split(", ")) if also else ()

    @property
    def torch_arguments(self) -> str:
        """The arguments of torch's layer: `embed_dim= num_heads=heads`."""
        return self._find_line(IN_TORCH)

    def _find_line(self, start: str) -> str:
        lines = (each.removeprefix(start) for each in self.text.splitlines() if each.startswith(start))
        return next(lines, "").rstrip(".")

    @property
    def whole(self) -> str:
        """Its text, with the blocks of its file that it uses."""
        parts = [(each[0], each[3]) for each in DEFINITION.finditer(self.source.text)]
        texts = [self.text]
        for text in texts:
            texts += [part for part, name in parts if part not in texts and re.search(rf"-> {name}\b", text)]
        return "\n".join(texts)

    @property
    def signature(self) -> str:
        """Its signature, such as `cosine(k=1, …)`."""
        head = re.search(rf"^{self.keyword} (.*?)(?: for .*?)? {{$", self.text, re.MULTILINE | re.DOTALL)
        assert head is not None, f"{self.name} has no head"
        return " ".join(head[1].split())

    @property
    def comment(self) -> str:
        """The first line of the comment."""
        return self.text.partition("\n")[0].removeprefix("# ")


@cache
def routers() -> dict[str, Written]:
    """Read every router, by name."""
    found = (each for path in sorted(HOME.glob("routers/*.mod")) for each in _read(path))
    return {each.name: each for each in found if each.keyword == "router"}


@cache
def blocks() -> dict[str, Written]:
    """Read every block by name: the one that its file is called after."""
    paths = sorted(HOME.glob("blocks/*.mod"))
    return {path.stem: next(each for each in _read(path) if each.name == path.stem) for path in paths}


def find_written(name: str) -> Written | None:
    """Find a definition by name."""
    return routers().get(name) or blocks().get(name)


def _read(path: Path) -> list[Written]:
    source = Source(str(path), path.read_text(), f"<modgraph>/{path.name}")
    return [Written(each[2], each[3], source, each[0]) for each in DEFINITION.finditer(source.text)]


def is_prelude(source: Source) -> bool:
    """Whether a text is one of these definitions."""
    known = (*routers().values(), *blocks().values())
    return source.name.startswith(str(HOME)) and any(each.source is source for each in known)
