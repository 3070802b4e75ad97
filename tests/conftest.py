"""Options of the tests."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from modgraph.ir import Graph, verify
from modgraph.passes import Determinize, InferenceOnly, Lower


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh", action="store_true", help="write golden files anew")
    parser.addoption("--slow", action="store_true", help="run the long checks too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="a long check: run with --slow"))


def pytest_runtest_setup() -> None:
    """torch makes the table of its ONNX functions anew for each export, always the same: a third of a second."""
    module: Any = sys.modules.get("torch.onnx._internal.exporter._registration")
    if module is not None and not hasattr(module.ONNXRegistry.from_torchlib, "cache_info"):
        module.ONNXRegistry.from_torchlib = staticmethod(functools.cache(module.ONNXRegistry.from_torchlib))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests are unlike in length: a process that has none left takes from the others."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture(autouse=True, scope="session")
def every_pass_is_verified() -> Iterator[None]:
    """Around every pass that a test runs: its graph is what the declarations say, and what the pass ensures."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in (InferenceOnly, Determinize, Lower):
            patch.setattr(kind, "__call__", verifying(kind.__call__))
        yield


def verifying(run: Callable[[Any, Graph], Graph]) -> Callable[[Any, Graph], Graph]:
    def verified(self: Any, graph: Graph) -> Graph:
        after = run(self, graph)
        verify(after)
        assert self.ensures(after), f"{self} left undone what it ensures"
        return after

    return verified


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A small net on scikit-learn's digits, its recipe and data beside it."""
    from tests.small_runs import laid_out

    return laid_out(tmp_path)
