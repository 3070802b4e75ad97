"""Compiled top-k routing against a dense MLP of the same active FLOPs, and against other libraries: ratios in one run.

    python benchmarks/routing.py [--quick] [--tokens 16 512 2048 8192] [--experts 8 64] [--k 1 2] [--onnx]

T tokens of width 256, experts 256 → 1024 → 256, k of them for each token; the floor is one MLP 256 → 1024 k → 256.
Ratios are per FLOP: the router's count too, which is 13 % more for cosine with k = 1.
"forward" is inference; "both" a forward and backward pass in training, down to the tokens, with noise; "onnx" is
inference in ONNX Runtime, where com.microsoft.MoE takes part (its softmax, and GELU by tanh). "bare" is the experts
alone on even slices, without any routing: what it takes to read all their weights and write all their gradients.
Other libraries (`pip install modgraph-compiler[bench]`) take part if they are installed: transformers' Mixtral block
in its fastest form, whose experts have three matrices and whose time is divided by 1.5; st-moe-pytorch and
mixture-of-experts, their capacity raised until no token is dropped, where the memory for that suffices. All of these
route by a linear map.
Goals from 2048 tokens on: both passes at most 1.25 of the floor with 8 experts and 1.5 with 64, in ONNX Runtime 1.3,
ahead of every library, and as fast with many experts as with few.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from options import parse_options
from torch import Tensor, nn

import modgraph

D, HIDDEN = 256, 1024
MOST_DISPATCHED = 2**26  # elements of a tensor of tokens × experts × places, 256 MiB
WARM = 2
ONNX_PEER = "ms-moe"

SPEC = """
model layer(tokens=2048, experts=8, k=2, gating="linear") {
  input x: float[tokens, 256]
  pool expert[experts] = linear(1024) -> gelu -> linear(256)
  if gating == "cosine" {
    router gate = cosine(k, noise=1 / experts)
  } else {
    router gate = linear(k, noise=1 / experts)
  }
  y = x -> expert by gate
  output y
}
"""
FLOOR = """
model floor(tokens=2048, k=2) {
  input x: float[tokens, 256]
  y = x -> linear(1024 * k) -> gelu -> linear(256)
  output y
}
"""


@dataclass(frozen=True)
class Size:
    tokens: int
    experts: int
    k: int


@dataclass(frozen=True)
class Contender:
    """A module, a call for its value, and its work as a multiple of the floor's."""

    module: nn.Module
    value: Callable[[Tensor], Tensor]
    work: float = 1.0


def compiled(size: Size) -> dict[str, modgraph.Program]:
    """Make the floor, and the layer with each router."""
    settings = {"tokens": size.tokens, "k": size.k}
    layers = {
        gating: modgraph.loads(SPEC, gating=gating, experts=size.experts, **settings) for gating in ("linear", "cosine")
    }
    return {"floor": modgraph.loads(FLOOR, **settings), **layers}


def work_of(programs: dict[str, modgraph.Program]) -> dict[str, float]:
    """Count active multiply-accumulates, the router's too, relative to the floor's."""
    floor = programs["floor"].cost().active_macs
    return {name: program.cost().active_macs / floor for name, program in programs.items()}


class Bare(nn.Module):
    """The experts of a layer without routing, each on an equal share of the work."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.k = size.k
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(D, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, D)) for _ in range(size.experts)
        )

    def forward(self, x: Tensor) -> Tensor:
        shares = torch.cat([x[0]] * self.k).tensor_split(len(self.experts))
        return torch.cat([expert(share) for expert, share in zip(self.experts, shares, strict=True)])


def mixtral(size: Size) -> Contender | None:
    from transformers import MixtralConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

    config = MixtralConfig(
        hidden_size=D,
        intermediate_size=HIDDEN,
        num_local_experts=size.experts,
        num_experts_per_tok=size.k,
        experts_implementation="grouped_mm",
    )
    module = MixtralSparseMoeBlock(config)
    for parameter in module.parameters():
        nn.init.normal_(parameter, 0, 0.02)
    return Contender(module, lambda x: first(module(x)), 1.5)


def st_moe(size: Size) -> Contender | None:
    from st_moe_pytorch import MoE

    if size.k < 2 or size.tokens**2 * size.experts > MOST_DISPATCHED:
        return None
    most = float(size.experts)
    module = MoE(
        dim=D,
        num_experts=size.experts,
        gating_top_n=size.k,
        threshold_train=0.0,
        threshold_eval=0.0,
        capacity_factor_train=most,
        capacity_factor_eval=most,
    )
    return Contender(module, lambda x: first(module(x)))


def mixture_of_experts(size: Size) -> Contender | None:
    from mixture_of_experts import MoE

    if size.k != 2 or size.tokens**2 * size.experts > MOST_DISPATCHED:
        return None
    policies = {"second_policy_train": "all", "second_policy_eval": "all"}
    most = float(size.experts)
    module = MoE(
        dim=D,
        num_experts=size.experts,
        hidden_dim=HIDDEN,
        capacity_factor_train=most,
        capacity_factor_eval=most,
        **policies,
    )
    return Contender(module, lambda x: first(module(x)))


PEERS: dict[str, tuple[str, Callable[[Size], Contender | None]]] = {
    "mixtral": ("transformers", mixtral),
    "st-moe": ("st_moe_pytorch", st_moe),
    "mixture": ("mixture_of_experts", mixture_of_experts),
}


def first(result: Any) -> Tensor:
    value: Tensor = result if isinstance(result, Tensor) else result[0]
    return value


def contenders(size: Size, peers: bool) -> dict[str, Contender]:
    """List the floor first, then the contenders."""
    programs = compiled(size)
    work = work_of(programs)
    models = {name: program.build() for name, program in programs.items()}
    found = {name: Contender(model, model, work[name]) for name, model in models.items()}
    bare = Bare(size)
    found["bare"] = Contender(bare, bare)
    for name, (package, make) in PEERS.items() if peers else ():
        made = make(size) if find_spec(package) else None
        if made is not None:
            found[name] = made
    return found


def forward(contender: Contender, x: Tensor) -> float:
    contender.module.eval()
    with torch.no_grad():
        start = time.perf_counter()
        contender.value(x)
        return time.perf_counter() - start


def both(contender: Contender, x: Tensor) -> float:
    contender.module.train()
    contender.module.zero_grad()
    tokens = x.clone().requires_grad_()
    start = time.perf_counter()
    contender.value(tokens).square().sum().backward()
    return time.perf_counter() - start


def ratios(times: dict[str, list[float]], work: dict[str, float]) -> dict[str, float]:
    """Compute the median over rounds of each time over the floor's in the same round, per FLOP."""
    return {
        name: statistics.median(a / b for a, b in zip(all_, times["floor"], strict=True)) / work[name]
        for name, all_ in times.items()
    }


def measured(functions: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Measure the seconds of each function, in turn."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for round_ in range(rounds + WARM):
        for name, function in functions.items():
            seconds = function()
            if round_ >= WARM:
                times[name].append(seconds)
    return times


def compare(size: Size, rounds: int, peers: bool) -> Iterator[tuple[str, dict[str, float], float]]:
    x = torch.randn(1, size.tokens, D)
    found = contenders(size, peers)
    work = {name: each.work for name, each in found.items()}
    for name, step in (("forward", forward), ("both", both)):
        times = measured({key: partial(step, each, x) for key, each in found.items()}, rounds)
        yield name, ratios(times, work), statistics.median(times["floor"])


def compare_exported(size: Size, rounds: int) -> Iterator[tuple[str, dict[str, float], float]]:
    """Compare the same layers in ONNX Runtime with the floor there."""
    x = torch.randn(1, size.tokens, D).numpy()
    programs = compiled(size)
    models = {**{name: exported(program) for name, program in programs.items()}, ONNX_PEER: microsoft_moe(size)}
    times = measured({name: partial(seconds_of, loaded(model), x) for name, model in models.items()}, rounds)
    yield "onnx", ratios(times, {**work_of(programs), ONNX_PEER: 1.0}), statistics.median(times["floor"])


def exported(program: modgraph.Program) -> bytes:
    """Export a program to ONNX; tests check that it computes the same."""
    from modgraph.backends.onnx import deterministic
    from modgraph.backends.onnx.examples import Examples
    from modgraph.backends.onnx.trace import trace

    model = deterministic(program.build())
    with torch.no_grad():
        traced = trace(model, Examples.from_arrays(model.graph, None)).only(model.graph.outputs)
    return bytes(traced.proto.SerializeToString())


def microsoft_moe(size: Size) -> bytes:
    """Make a linear router with onnxruntime's own operator for mixtures of experts."""
    from onnx import TensorProto, helper, numpy_helper

    E = size.experts
    shapes = {"router": (D, E), "w1": (E, HIDDEN, D), "b1": (E, HIDDEN), "w2": (E, D, HIDDEN), "b2": (E, D)}
    weights = [numpy_helper.from_array((torch.randn(shape) * 0.02).numpy(), name) for name, shape in shapes.items()]
    nodes = [
        helper.make_node("MatMul", ["x", "router"], ["scores"]),
        helper.make_node("Reshape", ["scores", "two axes"], ["scores of tokens"]),
        helper.make_node(
            "MoE",
            ["x", "scores of tokens", "w1", "b1", "w2", "b2"],
            ["y"],
            domain="com.microsoft",
            k=size.k,
            activation_type="gelu",
            normalize_routing_weights=int(size.k > 1),
        ),
    ]
    weights.append(numpy_helper.from_array(torch.tensor([-1, E]).numpy(), "two axes"))
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size.tokens, D]) for name in "xy"]
    graph = helper.make_graph(nodes, "moe", ports[:1], ports[1:], weights)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def loaded(content: bytes) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 4
    return ort.InferenceSession(content, options)


def seconds_of(session: Any, x: Any) -> float:
    start = time.perf_counter()
    session.run(None, {"x": x})
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description="Top-k routing against a dense MLP of the same active FLOPs.")
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 512, 2048, 8192])
    parser.add_argument("--experts", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--k", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-peers", action="store_true", help="leave other libraries out")
    parser.add_argument(
        "--onnx", action="store_true", help="also measure ONNX Runtime; an export of 64 experts takes a minute"
    )
    options = parse_options(parser, tokens=[16], experts=[2, 4], k=[1], rounds=1, no_peers=True, onnx=True)
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    peers = [] if options.no_peers else [*PEERS]
    names = ["linear", "cosine", "bare", *peers, *([ONNX_PEER] if options.onnx else [])]
    print(f"{'tokens':>6} {'experts':>7} {'k':>2} {'pass':8} {'floor ms':>8}", *(f"{name:>8}" for name in names))
    growth: dict[tuple[int, int, str], list[float]] = {}
    for tokens, k, experts in itertools.product(options.tokens, options.k, options.experts):
        size = Size(tokens, experts, k)
        runs = list(compare(size, options.rounds, not options.no_peers))
        runs += compare_exported(size, options.rounds) if options.onnx else ()
        for name, found, seconds in runs:
            cells = (f"{found[each]:8.2f}" if each in found else f"{'–':>8}" for each in names)
            print(f"{size.tokens:6} {size.experts:7} {size.k:2} {name:8} {1000 * seconds:8.2f}", *cells, flush=True)
            growth.setdefault((tokens, k, name), []).append(found["linear"])
    few, many = options.experts[0], options.experts[-1]
    for (tokens, k, name), all_ in growth.items() if few < many else ():
        print(f"{tokens} tokens, k = {k}, {name}: {many} experts take {all_[-1] / all_[0]:.2f} of the time of {few}")


if __name__ == "__main__":
    main()
