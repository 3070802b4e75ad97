"""What does not fit into memory is told, with its size."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

import modgraph
from modgraph.backends.torch import build, make_generator
from modgraph.data import Arrays
from modgraph.diagnostics import ModgraphError
from modgraph.training.algorithms import EM
from modgraph.training.algorithms.algorithm import Setup
from modgraph.training.run import report_memory
from tests.small_runs import begin


@contextmanager
def memory_of(size: int) -> Iterator[None]:
    """Let this process have so many bytes of addresses more: a machine that promises what it has not would fill up."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])  # a JavaScript engine alone has asked for terabytes
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.slow
def test_a_batch_that_no_memory_holds_is_reported_with_its_size(spec: Path, tmp_path: Path) -> None:
    """Examples are taken as often as the batch needs them."""
    spec.write_text(spec.read_text().replace("float[1, 8, 8]", "float[64, 1024]"))
    labels = np.zeros(64, int)
    np.savez_compressed(tmp_path / "digits.npz", image=np.zeros((64, 64, 1024), np.float32), label=labels)
    with pytest.raises(ModgraphError) as caught, memory_of(64 * 2**30):
        begin(spec, tmp_path / "run", train__batch=1_000_000, train__steps_per_epoch=1)
    (message,) = caught.value.diagnostics
    assert message.code == "MG612"
    assert "unable to allocate 244. GiB for an array with shape (1000000, 64, 1024)" in message.text()
    assert "train.batch=500000" in message.advice()


def test_what_torch_cannot_have_is_reported_and_other_faults_are_not_taken_for_it() -> None:
    with pytest.raises(ModgraphError, match=r"needs 1\.0 PB at once"), report_memory(1):
        torch.empty(10**15, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), report_memory(1):
        torch.ones(2, 3) @ torch.ones(2, 3)


# ------------------------------------------------------------ the table of em

MANY = """
model many(modules=3) {
  input  x: float[1]
  target y: float[1]
  pool   expert[modules] = linear(1)
  router choose = categorical(1)
  z = x -> expert by choose
  output z
  loss gaussian(z, y, variance=0.1)
}
"""


@pytest.mark.parametrize(
    ("modules", "dtype"),
    [(256, torch.uint8), (257, torch.int16), (32_768, torch.int16), (32_769, torch.int32), (65_536, torch.int32)],
)
def test_the_table_of_em_holds_every_module_in_as_few_bytes_as_that_takes(modules: int, dtype: torch.dtype) -> None:
    arrays = Arrays({name: np.zeros((20_000, 1), np.float32) for name in ("x", "y")})
    learner = EM().learner(Setup(modgraph.loads(MANY, modules=modules).ir, {"train": arrays}, 0, 5, 1))
    (table,) = learner.tensors().values()
    assert table.dtype == dtype
    assert int(table.min()) >= 0
    assert int(table.max()) < modules
    assert int(table.max()) > 0.9 * modules
    whole = torch.randint(modules, table.shape, generator=make_generator(0, "assignments", "z.expert"))
    assert torch.equal(table.to(torch.int64), whole)


def test_a_table_in_fewer_bytes_is_read_and_one_of_other_modules_is_not() -> None:
    arrays = Arrays({name: np.zeros((7, 1), np.float32) for name in ("x", "y")})
    learner = EM().learner(Setup(modgraph.loads(MANY, modules=300).ir, {"train": arrays}, 0, 5, 1))
    ((name, table),) = learner.tensors().items()
    kept = torch.arange(7).reshape(table.shape)
    for dtype in (torch.uint8, torch.int16, torch.int32):
        table.zero_()
        learner.restore({name: kept.to(dtype)}, {})
        assert torch.equal(table, kept.to(table.dtype))
    for wrong in (kept + 294, kept - 1, kept.to(torch.float32), kept[:5]):
        with pytest.raises(ValueError, match="assignments of"):
            learner.restore({name: wrong}, {})


def test_a_table_that_no_memory_holds_is_reported_before_it_is_made() -> None:
    """8 TB: a million examples of a million decisions, eight bytes each on the way."""
    spec = MANY.replace("float[1]", "float[time, 1]").replace("x ->", "x -> mean ->").replace("x -> mean", "x")
    column = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (10**6, 10**6, 1), (0, 0, 0))
    given = Setup(modgraph.loads(spec).ir, {"train": Arrays({"x": column, "y": column})}, 0, 64, 1)
    with pytest.raises(ModgraphError, match=r"needs 1\.0 TB of memory"), report_memory(64):
        EM().learner(given)


def test_an_e_step_takes_no_more_than_all_examples() -> None:
    arrays = Arrays({name: np.zeros((7, 1), np.float32) for name in ("x", "y")})
    learner = EM(batch=10**20).learner(Setup(modgraph.loads(MANY).ir, {"train": arrays}, 0, 5, 1))
    learner.prepare(build(learner.graph, asked=learner.wanted), 0)
