"""Options of the tests."""

from __future__ import annotations

import faulthandler
import functools
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code import TracebackEntry
from _pytest.faulthandler import fault_handler_stderr_fd_key
from hypothesis import HealthCheck, settings
from tqdm import tqdm

from modgraph.ir import Graph, verify
from modgraph.passes import Pass
from tests.ordinary_run import leave_to_slow_runs
from tests.passes.ensured import ensures

if TYPE_CHECKING:
    from tests.traces import Trace

# Several tests run beside each other: threads of one would only wait for those of another, and burn time as they do.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the processes that tests start compile nothing twice
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a script runs in the background would ignore Ctrl-C
# A seventh of the tests' time went into looking for cycles among the objects of torch's modules, which stay.
gc.set_threshold(100_000, 20, 100)


def find_line(entry: TracebackEntry) -> int:
    """The line of an entry of a traceback, from 0. Python has none where a signal, as of a limit, interrupts code of
    no line; pytest's own look-up would end all tests there."""
    raw = entry._rawentry
    return (raw.tb_lineno or raw.tb_frame.f_code.co_firstlineno) - 1


TracebackEntry.lineno = property(find_line)  # type: ignore[assignment]

# What takes how long depends on the machine: no example of a property is refused for its time.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=8)
settings.register_profile("slow", settings.get_profile("any machine"), max_examples=200)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("slow" if config.getoption("--slow") else "any machine")


def pytest_collection_finish() -> None:
    """What is imported by now is left alone by the collector."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--refresh", action="store_true", help="write golden files anew")
    parser.addoption("--slow", action="store_true", help="run the long checks too")


# Folders of long tests, begun first, so that processes end together.
LONG = ("backends/onnx", "training", "trace", "assault", "web", "inspect", "cli", "runtime")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not any(f"tests/{folder}/" in item.nodeid for folder in LONG))
    on_cuda = [item for item in items if "cuda" in item.keywords]
    if on_cuda and not _has_cuda():
        for item in on_cuda:
            item.add_marker(pytest.mark.skip(reason="this machine has no CUDA device"))
    if not config.getoption("--refresh"):
        leave_to_slow_runs(items)
    for item in items:
        if "slow" in item.keywords and config.getoption("--slow"):
            item.add_marker(pytest.mark.timeout(0))
        elif "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="a long check: run with --slow"))


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file run in one process, so that what they share is made once, and files in their order."""
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What libraries do anew for each export, for absent devices, or between two calls, and need not."""
    if "slow" in item.keywords:
        faulthandler.cancel_dump_traceback_later()
    torch = sys.modules.get("torch")
    if torch is not None and not torch.accelerator.is_available():
        torch.manual_seed = torch.default_generator.manual_seed
    exporting, table = sys.modules.get("torch._export.utils"), "_collect_all_valid_cia_ops_for_namespace"
    if exporting is not None and not hasattr(getattr(exporting, table), "cache_info"):
        setattr(exporting, table, functools.cache(getattr(exporting, table)))
    runtime = sys.modules.get("onnxruntime")
    if runtime is not None and isinstance(runtime.SessionOptions, type):
        runtime.SessionOptions = functools.partial(_at_rest, runtime.SessionOptions)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """What ends fixtures is limited too: a test that failed has lost its limits."""
    limit, errors = float(item.config.getini("faulthandler_timeout")), item.config.stash[fault_handler_stderr_fd_key]
    if limit and "slow" not in item.keywords:
        faulthandler.dump_traceback_later(limit, file=errors, exit=True)


@pytest.fixture(autouse=True, scope="session")
def bars_share_nothing() -> None:
    """Bars of progress have a lock in common with forked processes, which may be killed while they have it, and a
    thread, which may have it as they are forked."""
    tqdm.monitor_interval = 0
    tqdm.set_lock(threading.RLock())


@pytest.fixture(autouse=True, scope="session")
def nobody_waits_for_a_disk() -> Iterator[None]:
    """What tests end are processes, never the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def _at_rest(make: Callable[[], Any]) -> Any:
    """Settings of a session whose threads sleep between two calls, instead of keeping a core busy till the next."""
    options = make()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


@pytest.fixture(autouse=True, scope="session")
def every_pass_is_verified() -> Iterator[None]:
    """Around every pass that a test runs: its graph is what the declarations say, and what the pass ensures."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in Pass.__subclasses__():
            patch.setattr(kind, "__call__", verifying(kind.__call__))
        yield


def verifying(run: Callable[[Any, Graph], Graph]) -> Callable[[Any, Graph], Graph]:
    def verified(self: Any, graph: Graph) -> Graph:
        after = run(self, graph)
        if after is not graph:
            verify(after)
        assert ensures(self, after), f"{self} left undone what it ensures"
        return after

    return verified


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder for traces, which all processes that run tests share."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "traces"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def trace_once(traces: Path) -> Iterator[Trace]:
    """Traces a model once if it is met again. Exports of the test do the same."""
    from tests.traces import shared_traces

    with shared_traces(traces) as remembered:
        yield remembered


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A small net on scikit-learn's digits, its recipe and data beside it."""
    from tests.small_runs import lay_out_run

    return lay_out_run(tmp_path)
