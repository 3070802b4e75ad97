"""The JavaScript libraries of pages: compressed, each with its licence in a folder of its own."""

from __future__ import annotations

import base64
import gzip
from enum import Enum
from functools import cache
from importlib.resources import files


class Library(Enum):
    """A library; its value names it in pages."""

    ELK = "elkjs 0.12.1, the Eclipse Layout Kernel: EPL-2.0, its source at https://github.com/kieler/elkjs"
    VEGA = "Vega 6.4.0, Vega-Lite 6.4.3, vega-interpreter 2.3.2: BSD-3-Clause, at https://github.com/vega/vega"

    @property
    def id(self) -> str:
        return self.name.lower()

    def read_packed(self) -> bytes:
        """The script, compressed by gzip."""
        return _read(self.id)

    def script(self) -> str:
        return _unpack(self.id)

    def embed(self) -> str:
        """The element of a page that has the library, which its script unpacks (`packed.js`)."""
        content = base64.b64encode(self.read_packed()).decode()
        return f'<!-- {self.value} -->\n<script type="text/plain" id="{self.id}">{content}</script>'


@cache
def _read(name: str) -> bytes:
    return files(__package__).joinpath(name, f"{name}.bundled.js.gz").read_bytes()


@cache
def _unpack(name: str) -> str:
    return gzip.decompress(_read(name)).decode()
