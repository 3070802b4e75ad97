"""Adds the specs that pages link to to the site, as a hook of mkdocs. In the repository they stand outside of
`docs`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

SPECS = Path(__file__).parents[2] / "specs"


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add every spec, below `specs`."""
    for path in sorted(SPECS.rglob("*.mod")):
        place = path.relative_to(SPECS.parent).as_posix()
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Redirect links that leave `docs` to the specs of the site."""
    return re.sub(r"\]\(\.\./((?:\.\./)*specs/)", r"](\1", markdown)
