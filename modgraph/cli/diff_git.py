"""`modgraph diff --git`: the words that git gives an external diff, and what it shows for them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from modgraph.diagnostics import Diagnostic, ModgraphError, Report, render_all
from modgraph.store.opened import Opened, opened
from modgraph.syntax import read

OF_EACH_SIDE = 3  # a file, its hash, its mode


class NotFromGit(Diagnostic):
    """`diff --git` is for git, which calls it with the words of an external diff: the path of the file, then a file, a
    hash and a mode for each of two versions."""

    code = "MG821"
    message = "--git takes the words that git gives an external diff, and these are {count}"
    help = "let git call it: git config diff.modgraph.command 'modgraph diff --git'"


@dataclass(frozen=True)
class Versions:
    """A file in two versions: its path in each, and where the content of each stands."""

    paths: tuple[str, str]
    files: tuple[str, str]

    @classmethod
    def of(cls, words: Sequence[str]) -> Versions | None:
        """What git's words say; of a file that is not merged there is nothing to compare. Raises `ModgraphError`."""
        if len(words) == 1:
            return None
        if len(words) < 1 + 2 * OF_EACH_SIDE:
            raise ModgraphError([NotFromGit(count=len(words))])
        path, before, after = words[0], words[1], words[1 + OF_EACH_SIDE]
        renamed = words[1 + 2 * OF_EACH_SIDE :]
        return cls((path, renamed[0] if renamed else path), (before, after))

    @property
    def are_two(self) -> bool:
        return os.devnull not in self.files

    def opened(self) -> tuple[Opened, Opened]:
        """Both versions; what they import is read from the working tree. Raises `ModgraphError`."""
        before, after = (opened(file, known_as=path) for file, path in zip(self.files, self.paths, strict=True))
        return before, after

    def only(self) -> str:
        """What is told of a file that has one version."""
        gone = self.files[1] == os.devnull
        return f"{self.paths[not gone]} ({'deleted' if gone else 'new'})"

    def as_text(self, error: ModgraphError | None) -> str:
        """The versions line by line, and why their architectures cannot be told."""
        before, after = map(_lines, self.files)
        lines = difflib.unified_diff(before, after, *self.paths, lineterm="")
        return "\n".join([*_reasons(error), *lines])


def _lines(file: str) -> list[str]:
    source = None if file == os.devnull else read(file, Report())
    return [] if source is None else source.text.splitlines()


def _reasons(error: ModgraphError | None) -> Iterator[str]:
    if error is not None:
        yield "no architectures to compare, so here are the texts:"
        yield render_all(error.diagnostics)
