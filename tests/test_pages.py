"""The pages of README and docs: links, neighbours, the site, and blocks of code that run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.pages import CHECKOUT, check_page, run_page

DOCS = CHECKOUT / "docs"
README = CHECKOUT / "README.md"
CONFIGURATION = DOCS / "site/mkdocs.yml"
GENERATED = {"commands.md", "python.md", "reference.md"}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|<img[^>]*src=\"([^\"]+)\"")


def navigation(entries: list[Any]) -> list[str]:
    """The files of a navigation, in their order."""
    found = []
    for entry in entries:
        inner = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found += navigation(inner) if isinstance(inner, list) else [inner]
    return found


NAVIGATION = yaml.safe_load(CONFIGURATION.read_text())["nav"]
PAGES = navigation(NAVIGATION)
RUN = [name for name in PAGES if name.startswith(("tutorial/", "guides/", "runs.", "diff.", "trace.", "visualize."))]

LONG = dict.fromkeys(  # pages that train for long
    """tutorial/04-balance.md tutorial/05-layers.md tutorial/07-images.md tutorial/08-texts.md guides/deploy.md
    guides/experts.md guides/published-weights.md guides/python.md guides/sweeps.md runs.md""".split(),
    pytest.mark.slow,
)


def prose(page: Path) -> str:
    return re.sub(r"^( *)```.*?^ *```$|`[^`\n]+`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    """What a page links to, outside of code."""
    return [found[1] or found[2] for found in LINK.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site have them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [README, *DOCS.rglob("*.md")], ids=lambda page: page.relative_to(CHECKOUT).as_posix())
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(link)
    assert not broken, f"{page.relative_to(CHECKOUT)} links to {', '.join(broken)}"


def test_every_page_stands_in_one_of_the_four_parts_and_is_linked_from_readme() -> None:
    parts = [next(iter(entry)) for entry in NAVIGATION[1:]]
    assert parts == ["Tutorial", "Guides", "Reference", "Explanation"]
    assert len(PAGES) == len({*PAGES}), "a page stands twice in the navigation"
    assert {*PAGES} == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    linked = {link.partition("#")[0] for link in links(README)}
    missing = [name for name in PAGES if f"docs/{name}" not in linked]
    assert not missing, f"README.md links to none of {', '.join(missing)}"


@pytest.mark.parametrize("place", range(1, len(PAGES)), ids=PAGES[1:])
def test_a_page_links_to_its_neighbours(place: int) -> None:
    page = DOCS / PAGES[place]
    linked = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
    missing = [
        name for name in (PAGES[place - 1 : place] + PAGES[place + 1 : place + 2]) if (DOCS / name) not in linked
    ]
    assert not missing or PAGES[place] in GENERATED, (
        f"{PAGES[place]} lacks {', '.join(missing)}: run python docs/site/neighbours.py"
    )


def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(CONFIGURATION), "-d", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    commands = (tmp_path / "commands.html").read_text()
    assert "SPEC|RUN" in commands and r"\|" not in commands, "a bar in a table is written with its escape"
    guide, page = tmp_path / "guides/playground.html", tmp_path / "playground/index.html"
    assert ("../playground/index.html" in guide.read_text()) == page.exists()
    home = (tmp_path / "index.html").read_text()
    assert not re.findall(r"(?:src|href)=\"https?://[^\"]*\.(?:js|css|woff2?)", home), "the site asks another host"


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, ())) for name in RUN])
def test_the_blocks_of_a_page_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").symlink_to(CHECKOUT / "specs")
    run_page(DOCS / name)


@pytest.mark.parametrize("name", LONG)
def test_a_long_page_has_sound_specs_and_commands(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").symlink_to(CHECKOUT / "specs")
    check_page(DOCS / name)
