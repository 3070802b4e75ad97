"""The files of the playground: below one folder, by name and by URI; those that the editor has open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

SPEC, RECIPE = ".mod", ".yaml"


class WrongParameters(ValueError):
    """The parameters of a request do not fit."""


class UnknownMethod(Exception):
    """No request has this name."""


class NotInFolder(ValueError):
    """A URI or a name that is not of a file below the folder."""


@dataclass
class Documents:
    """The files below a folder, which is the current one: so messages name files as a command there would."""

    root: Path  # without links
    open: dict[str, str] = field(default_factory=dict)

    def name_of(self, uri: str) -> str:
        """The name of a file from its URI. Raises `NotInFolder`."""
        parts = urlsplit(uri)
        path = PurePosixPath(unquote(parts.path))
        if parts.scheme != "file" or not path.is_relative_to(self.root.as_posix()):
            raise NotInFolder(f'"{uri}" is not below {self.root.as_uri()}/')
        return self.check_name(path.relative_to(self.root.as_posix()).as_posix())

    def check_name(self, name: str) -> str:
        """Raises `NotInFolder` for a name that leads out of the folder, or that no file can have."""
        parts = name.split("/")
        if any(part in ("", ".", "..") for part in parts) or "\0" in name or "\\" in name:
            raise NotInFolder(f'"{name}" is not the name of a file below the folder')
        return name

    def uri_of(self, name: str) -> str:
        return (self.root / name).as_uri()

    def write(self, name: str, text: str | None) -> None:
        """Write a file; None removes it. Raises `NotInFolder`, and `OSError`."""
        path = self.root / self.check_name(name)
        if text is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))

    def write_files(self, files: Any) -> None:
        """Write files by name, if all names and texts fit. Raises `WrongParameters`, `NotInFolder`, and `OSError`."""
        if not isinstance(files, Mapping) or not all(isinstance(each, str | None) for each in files.values()):
            raise WrongParameters("files must be texts by name, or null")
        for name in files:
            self.check_name(name)
        for name, text in files.items():
            self.write(name, text)

    def list_files(self) -> Iterator[str]:
        """The names of all files, in order."""
        return (path.relative_to(self.root).as_posix() for path in sorted(self.root.rglob("*")) if path.is_file())

    def is_spec(self, name: str) -> bool:
        return name.endswith(SPEC)

    def spec_of(self, name: str) -> str | None:
        """The spec that a file is checked with: itself, or that of a recipe's name; None if there is none."""
        spec = PurePosixPath(name).with_suffix(SPEC).as_posix()
        if name.endswith(RECIPE):
            return spec if (self.root / spec).is_file() else None
        return name if name.endswith(SPEC) else None

    # ------------------------------------------------------------ what the language server asks

    def texts(self) -> Mapping[str, str]:
        return self.open

    def roots(self) -> Iterable[str]:
        return [str(self.root)]
