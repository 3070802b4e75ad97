"""Folders of image files, as they lie on the user's disk."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path

from modgraph.data.errors import BadImageFolder
from modgraph.diagnostics import ModgraphError
from modgraph.files import is_not_utf8, reason_of

SUFFIXES = (".jpg", ".jpeg", ".png")


@dataclass(frozen=True)
class Layout:
    """How folders are to lie, and what someone can do whose folders lie otherwise."""

    words: str
    way_out: str

    def fault(self, path: Path, reason: str, way_out: str | None = None) -> ModgraphError:
        """The message that a folder is not laid out so."""
        told = BadImageFolder(path=str(path), reason=reason, way_out=way_out or self.way_out, layout=self.words)
        return ModgraphError([told])


def folders_in(path: Path, what: str, layout: Layout) -> list[Path]:
    """The folders in one, at least one; hidden ones do not count. Raises `ModgraphError`, also where a name cannot be
    shown: names go into metrics, bundles and pages."""
    found = [each for each in _entries(path, layout) if _is_folder(each, layout) and not each.name.startswith(".")]
    if wrong := {each: reason for each in found if (reason := _name_problem(each.name))}:
        faults = (layout.fault(each, reason, f"rename the folder of the {what}") for each, reason in wrong.items())
        raise ModgraphError([diagnostic for fault in faults for diagnostic in fault.diagnostics])
    if not found:
        raise layout.fault(path, f"there is no folder in it, one for each {what}")
    return found


def images_in(path: Path, layout: Layout) -> list[Path]:
    """The images in a folder, at least one. Raises `ModgraphError`."""
    found = [each for each in _entries(path, layout) if each.suffix.lower() in SUFFIXES]
    if not found:
        reason = f"there is no image in it ({', '.join(SUFFIXES)})"
        raise layout.fault(path, reason, "add images or take the class out")
    return found


def _name_problem(name: str) -> str | None:
    """Why the name of a folder cannot be that of a class or a group, or None."""
    if is_not_utf8(name):
        return "its name is not UTF-8"
    if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in name):
        return "its name has characters that end a line or control a terminal"
    return None


def _entries(path: Path, layout: Layout) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except (OSError, ValueError) as error:
        raise layout.fault(path, reason_of(error)) from error


def _is_folder(path: Path, layout: Layout) -> bool:
    """Whether this is a folder, or a link to one. Raises `ModgraphError` where that cannot be told."""
    try:
        return path.is_dir()
    except OSError as error:
        raise layout.fault(path, reason_of(error)) from error
