"""The pages of the published systems in a real browser, with one thread and with several."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from modgraph.cli import main
from tests.inspect import browser as chromium
from tests.web.served import ISOLATED, NO_HEADERS, assert_as_in_python, last, made, opened, runs, settled, stroke

modgraph_web = pytest.importorskip("modgraph_web", reason="pip install ./export/web")
if not modgraph_web.available():
    pytest.skip("modgraph_web has no WebAssembly: pip install ./export/web, with npm", allow_module_level=True)

pytestmark = pytest.mark.slow

SETTINGS = {
    "smn": ["train.epochs=1", "data.train=400"],
    "gmoe_digits": ["train.epochs=1"],
    "modular_networks_lm": ["train.epochs=1", "data.limit=50"],
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of pages by the name of the spec, of runs that were hardly trained."""
    found = {}
    for name, settings in SETTINGS.items():
        folder = tmp_path_factory.mktemp(name)
        given = [word for setting in settings for word in ("-s", setting)]
        assert main(["train", f"specs/{name}.mod", "--out", str(folder / "run"), *given]) == 0
        found[name] = made(folder, folder / "run")
    return found


@pytest.fixture(scope="module")
def browser(pages: dict[str, Path]) -> Iterator[Browser]:
    yield from chromium.started()


@pytest.mark.parametrize("headers", [NO_HEADERS, ISOLATED], ids=["one thread", "isolated"])
@pytest.mark.parametrize("name", SETTINGS)
def test_what_a_user_draws_or_types_gives_what_python_gives(
    browser: Browser, pages: dict[str, Path], name: str, headers: Mapping[str, str]
) -> None:
    with opened(browser, pages[name], headers=headers) as page:
        is_single_threaded = headers is NO_HEADERS or os.cpu_count() == 1
        assert ("one thread" in page.inner_text(".status")) == is_single_threaded
        page.context.set_offline(True)
        before = runs(page)
        if name == "modular_networks_lm":
            page.fill("textarea", "In the beginning God created the heaven and the earth.")
        else:
            stroke(page, (0.1, 0.1), (0.4, 0.1), (0.2, 0.4))
        settled(page, before)
        assert_as_in_python(page, pages[name])
        assert page.locator(".word" if name == "modular_networks_lm" else ".map").count() > 1
        if name == "modular_networks_lm":
            assert last(page, "inputs")["words"].shape == (1, 11)
