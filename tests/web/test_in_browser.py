"""The ES module in a real browser: with threads where a page is isolated, and where the browser has no SHA-256."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from modgraph_runtime import Bundle
from playwright.sync_api import Browser, sync_playwright

import modgraph
from tests.inspect.browser import CHROMIUM, FLAGS, PATIENCE, answer_of
from tests.traces import shared_traces
from tests.web.served import ISOLATED, served

modgraph_web = pytest.importorskip("modgraph_web", reason="needs pip install -e ./export/web")
pytestmark = pytest.mark.skipif(not modgraph_web.available(), reason="needs pip install -e ./export/web")

SPEC = """
model small() {
  input  x: float[4, 6]
  target label: class[5]
  logits = x -> attention(2) -> layer_norm -> flatten -> linear(5)
  output logits
  loss cross_entropy(logits, label)
}
"""
PLAIN = "page.test"  # a host that is not this machine, as far as the browser knows: what comes by http is not secure
COMPUTE = """async ([threads, x]) => {
  const { Bundle } = await import("./modgraph.js");
  const bundle = await Bundle.load("model.onnx", { threads });
  const { env } = await import("./vendor/ort.wasm.min.mjs");
  const { logits } = await bundle.run({ x });
  return [Array.from(logits.data), env.wasm.numThreads, crossOriginIsolated, Boolean(crypto.subtle)];
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, traces: Path) -> Path:
    """A page with the module and a bundle beside it."""
    root = tmp_path_factory.mktemp("page")
    (root / "vendor").mkdir()
    for name, path in modgraph_web.files().items():
        shutil.copyfile(path, root / name)
    (root / "index.html").write_text('<!doctype html><link rel="icon" href="data:,"><title>page</title>')
    with shared_traces(traces):
        modgraph.export(modgraph.loads(SPEC).build(), root / "model.onnx")
    return root


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"needs {CHROMIUM}")
    flags = [*FLAGS, f"--host-resolver-rules=MAP {PLAIN} 127.0.0.1", "--js-flags=--liftoff-only"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=flags)
        yield browser
        browser.close()


@pytest.mark.parametrize(
    ("host", "headers", "threads", "secure"),
    [("127.0.0.1", {}, 1, True), ("127.0.0.1", ISOLATED, 2, True), (PLAIN, {}, 1, False)],
    ids=["plain", "isolated", "insecure"],
)
def test_a_page_computes_what_python_does(
    chromium: Browser, folder: Path, host: str, headers: dict[str, str], threads: int, secure: bool
) -> None:
    x = np.random.default_rng(0).random((3, 4, 6)).astype(np.float32)
    with served(folder, headers) as address:
        page = chromium.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(address.replace("127.0.0.1", host))
        logits, computed, isolated, digest = answer_of(page, COMPUTE, [2, x.tolist()])
        page.close()
    assert (computed, isolated, digest) == (threads, bool(headers), secure)
    wanted = Bundle(folder / "model.onnx").run({"x": x})["logits"]
    np.testing.assert_allclose(np.reshape(logits, wanted.shape), wanted, atol=1e-5)
