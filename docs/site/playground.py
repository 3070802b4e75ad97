"""Writes the playground into the site, as a hook of mkdocs, and links to it, where its libraries are installed
(`pip install ./export/web`). It runs the models whose pages `train_runs.py` exported."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path
from typing import Any

LOG = logging.getLogger("mkdocs.playground")
GUIDE, FOLDER = "guides/playground.md", "playground"
PAGES = "pages/*/page.json"  # next to the site's folder; written by train_runs.py
LINK = f'<p><a href="../{FOLDER}/index.html">Open the playground of this site</a></p>'


@cache
def is_installed() -> bool:
    """Whether the libraries of the playground are there."""
    try:
        import modgraph_web

        modgraph_web.playground()
    except (ImportError, FileNotFoundError):
        LOG.info("the site has no playground: pip install ./export/web")
        return False
    return True


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Link to the playground from its guide, below the title."""
    if page.file.src_uri != GUIDE or not is_installed():
        return html
    title, end, text = html.partition("</h1>")
    return f"{title}{end}\n{LINK}{text}"


def on_post_build(config: Any, **_: Any) -> None:
    """Write the playground, whose tour links to the tutorial of the site, with the models that were trained for it."""
    if is_installed():
        from modgraph.play.write import write_playground

        target = Path(config["site_dir"])
        pages = [record.parent for record in sorted(target.parent.glob(PAGES))]
        if not pages:
            LOG.info("the playground has no trained models: python docs/site/train_runs.py")
        write_playground(target / FOLDER, pages=pages, force=True, home="../")
