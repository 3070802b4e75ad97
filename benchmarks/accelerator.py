"""Measures training steps on an accelerator, and what each optimisation gains.

    python benchmarks/accelerator.py [--quick] [--device cuda] [--steps 50] [--rounds 3] [--minutes 9] [--only gat]

Specs of images, of text with attention, and of edges train on random data, so that nothing is to be read or installed.
The variants of a spec take turns in one process until its share of the minutes is used. For each it prints milliseconds
until the device is done, and of the processor. Variants: every step checks its loss and gradients, instead of every
50th; batches are read between steps, instead of by a thread; the modules of a pool run one after another, instead of as
one grouped product (in bfloat16); numbers of tokens are asked for as on a processor; attention without a fused kernel;
edges all by message passing, instead of matrices or rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from options import parse_options
from torch.nn.attention import SDPBackend, sdpa_kernel

import modgraph
from modgraph.backends.report import random_values
from modgraph.data.in_python import InPython
from modgraph.ir import Graph
from modgraph.nn import choice_routes, message_passing
from modgraph.nn import pool as pools
from modgraph.training.divergence import FiniteCheck
from modgraph.training.engine import Engine
from modgraph.training.run import start_run

SPECS = Path(__file__).parents[1] / "specs"
WARM = 5
PRECISIONS = ("float32", "bfloat16")
Variant = Callable[[Engine], AbstractContextManager[Any]]
Times = tuple[float, float]  # milliseconds of a step, and of the processor


@contextmanager
def check_each_step(engine: Engine) -> Iterator[None]:
    before, engine.finite = engine.finite, FiniteCheck(1)
    yield
    engine.finite = before


@contextmanager
def read_between_steps(engine: Engine) -> Iterator[None]:
    read = engine.reader.read

    def plainly(data: Any, order: Any, since: int) -> Any:
        return nullcontext((indices, read(data, indices, step)) for step, indices in enumerate(order, since))

    with patch.object(engine.reader, "reading", plainly):
        yield


def run_one_after_another(engine: Engine) -> AbstractContextManager[Any]:
    return patch.object(pools, "pays", lambda x, modules: False)


def ask_for_sizes(engine: Engine) -> AbstractContextManager[Any]:
    return patch.object(choice_routes, "can_wait", lambda x: True)


def attend_without_kernel(engine: Engine) -> AbstractContextManager[Any]:
    return sdpa_kernel(SDPBackend.MATH)


@contextmanager
def send_messages(engine: Engine) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(patch.object(message_passing, "are_dense", lambda *sizes: False))
        stack.enter_context(patch.object(message_passing, "FEW", 0))
        yield


EVERY: dict[str, Variant] = {
    "as it is": lambda engine: nullcontext(),
    "a look at every step": check_each_step,
    "read between steps": read_between_steps,
}
OF_POOLS: dict[str, Variant] = {"one module after another": run_one_after_another, "asked for sizes": ask_for_sizes}
OF_ATTENTION: dict[str, Variant] = {"attention without a kernel": attend_without_kernel}
OF_EDGES: dict[str, Variant] = {"edges by message passing": send_messages}


@dataclass(frozen=True)
class Case:
    """A spec with parameters, the sizes of a batch and of axes of any length, and its own variants."""

    spec: str
    batch: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    variants: Mapping[str, Variant] = field(default_factory=dict)


LANGUAGE = {"vocab_size": 8192, "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4}
LANGUAGE |= {"num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64}
CASES = {
    "gmoe_digits": Case("gmoe_digits", 64, variants=OF_POOLS | OF_ATTENTION),
    "mixtral": Case("zoo/mixtral", 16, LANGUAGE, {"time": 512}, OF_POOLS | OF_ATTENTION),
    "graph_moe": Case("zoo/graph_moe", 32, {"hidden": 128}, {"node": 512, "link": 4096}, OF_POOLS | OF_EDGES),
    "dense graphs": Case("zoo/graph_moe", 32, {"hidden": 128}, {"node": 128, "link": 4096}, OF_EDGES),
    "gat": Case("zoo/gat", 32, {"hidden": 16}, {"node": 512, "link": 4096}, OF_EDGES),
}
SMALL = {"time": 8, "node": 8, "link": 16}


def shrink(case: Case) -> Case:
    """Return a case that runs in a moment."""
    parameters = {} if case.spec == "zoo/mixtral" else case.parameters
    return Case(case.spec, 4, parameters, SMALL, case.variants)


def make_data(graph: Graph, case: Case, examples: int) -> InPython:
    """Return random examples."""
    lengths = defaultdict(lambda: 8, case.lengths)
    types = {**graph.input_types, **graph.target_types}
    named = {name: type_ for name, type_ in types.items() if type_.dtype != "length"}
    arrays = {name: random_values(type_, examples, lengths, "batch", name).numpy() for name, type_ in named.items()}
    return InPython.from_splits({"train": arrays, "test": arrays})


def measure(engine: Engine, count: int) -> Times:
    """Return the milliseconds of a step, and of the processor in it."""
    order = engine.order.draw(engine.train.seed, 0)
    device = engine.processes.device
    with engine.reader.reading(engine.phase.data, order, engine.progress.step) as examples:
        for at, (indices, read) in enumerate(examples):
            if at == WARM:
                wait_for(device)
                start, busy = time.perf_counter(), time.process_time()
            if at == WARM + count:
                break
            engine._step(indices, read)
        wait_for(device)
    done = min(at, WARM + count) - WARM
    return 1e3 * (time.perf_counter() - start) / done, 1e3 * (time.process_time() - busy) / done


def wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure_case(case: Case, precision: str, given: argparse.Namespace, until: float) -> dict[str, Times]:
    """Return the least times of each variant in turns of all, which end after some rounds or at a time."""
    program = modgraph.load(SPECS / f"{case.spec}.mod", **case.parameters)
    train = {"device": given.device, "precision": precision, "batch": case.batch, "epochs": 1}
    recipe = {"train": {**train, "steps_per_epoch": WARM + given.steps + 1}}
    variants, found = {**EVERY, **case.variants}, defaultdict[str, list[Times]](list)
    with (
        tempfile.TemporaryDirectory() as folder,
        start_run(program, recipe, {}, f"{folder}/run", data=make_data(program.ir, case, 4 * case.batch)) as engine,
    ):
        for _ in range(given.rounds):
            for name, variant in variants.items():
                with variant(engine):
                    found[name].append(measure(engine, given.steps))
            if time.perf_counter() > until:
                break
    return {name: min(times) for name, times in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    given = parse_options(parser, device="cpu", steps=2, rounds=1)
    device = torch.cuda.get_device_name() if given.device.startswith("cuda") else given.device
    print(f"torch {torch.__version__}, {device}")
    print(f"{'spec':13}{'precision':11}{'':28}{'ms':>8} {'processor':>10}")
    begin, pairs = time.perf_counter(), [(name, precision) for name in given.only for precision in PRECISIONS]
    for at, (name, precision) in enumerate(pairs, start=1):
        case = shrink(CASES[name]) if given.quick else CASES[name]
        until = begin + 60 * given.minutes * at / len(pairs)
        for variant, (wall, busy) in measure_case(case, precision, given, until).items():
            print(f"{name:13}{precision:11}{variant:28}{wall:8.2f} {busy:10.2f}", flush=True)
    print(f"{(time.perf_counter() - begin) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
