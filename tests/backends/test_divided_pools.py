"""Pools whose modules are divided among processes: values and gradients of one process that holds all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from modgraph import loads
from modgraph.backends.torch import Model, build
from modgraph.inspect.cost import TrainingStep
from modgraph.inspect.division import divide_cost
from modgraph.ir.analysis.division import divide_places, find_holders
from modgraph.nn import DividedPool, Group, Messages, Shard, exchange, use_shard
from modgraph.passes import NoSuchLowering
from modgraph.training.experts import Experts, add_over
from tests.children import begun_in_a_child, end_of, output_of_child

HEAD = "model m() { input x: float[5, 4] "
ROUTES = {
    "k = 2": "pool p[3] = linear(6) -> relu -> linear(4) s = x -> linear(p) "
    "y = x -> p by ((s, s -> top_k(2)) -> masked_softmax) output y",
    "unlike modules": "pool p = [linear(4), linear(7) -> tanh -> linear(4), identity] s = x -> linear(p) "
    "y = x -> p by ((s, s -> top_k(1)) -> masked_softmax) output y",
    "modules that pass no gradient on": "pool p = [stop_gradient, linear(4), identity, stop_gradient -> linear(4)] "
    "s = x -> linear(p) y = x -> p by ((s, s -> top_k(2)) -> masked_softmax) output y",
    "every module": "pool p[3] = linear(4) -> tanh y = x -> p z = y -> p output z",
    "weighted sums": "pool p[4] = linear(3) -> tanh y = x -> p by (x -> linear(p) -> softmax) output y",
    "affine modules": "pool p[3] = linear(2) w = x -> linear(p) -> softmax(axis=-2) y = x -> p by w over -2 output y",
    "one module": "pool p = [linear(4), linear(3) -> linear(4)] y = (x -> p[1]) + (x -> p[0] -> p[1]) output y",
    "ids": 'pool p[3] = embedding(4) t = x -> top_k_indices(1) e = t -> p -> mean(axis="p") '
    "y = e + (t -> p[2]) output y",
    "shared weights": "pool p[4] = modulated_linear(4) y = x -> p by (x -> linear(p) -> softmax) output y",
    "images, with statistics of the batch": "pool p = [batch_norm, conv(1, kernel=3, padding=1), identity] "
    "i = x -> unmerge([1, 5], axis=-2) "
    "s = i -> flatten -> linear(p) y = i -> p by ((s, s -> top_k(1)) -> masked_softmax) output y",
    "steps of a scan": "pool p[3] = linear(4) -> tanh scan x as step with h: float[4] { "
    "s = h + step -> linear(p) h = h + (step -> p by ((s, s -> top_k(2)) -> masked_softmax)) yield h } as y output y",
    "a loop that ends by a value": "pool p[3] = linear(4) -> tanh scan 0..6 as n with h: float[5, 4] = x { "
    "s = h -> linear(p) h = h + (h -> p by ((s, s -> top_k(1)) -> masked_softmax)) yield h } "
    "until ((h -> mean(axis=-1) -> mean(axis=-1)) > 0.3) as y output y",
}
"""Bodies of models, by what they show."""


def join(rank: int, size: int, file: str) -> Group:
    dist.init_process_group(
        "gloo", init_method=f"file://{file}", rank=rank, world_size=size, timeout=timedelta(seconds=30)
    )
    return Group(size, rank, dist.group.WORLD)


def compare(rank: int, size: int, file: str, lowering: str | None, examples: int) -> int:
    group, compared = join(rank, size, file), 0
    for name, body in ROUTES.items():
        try:
            compare_one(group, f"{HEAD}{body} }}", lowering, examples)
            compared += 1
        except NoSuchLowering:
            continue
        except Exception as error:
            print(f"process {rank}: {name}: {type(error).__name__}: {error}", flush=True)
            os._exit(1)
    return 0 if compared else 1


def compare_one(group: Group, text: str, lowering: str | None, examples: int) -> None:
    graph = loads(text).ir
    whole = build(graph, seed=1, lowering=lowering).double()
    own = build(graph, seed=1, lowering=lowering, group=group).double()
    x = torch.randn(examples, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    start, stop = (at * examples // group.size for at in (group.place, group.place + 1))
    inside = Messages(0, 0, 0, lambda each: each, torch.Generator())
    with use_shard(Shard(start, stop, examples, lambda each: add_over(each, group.handle), torch.Generator(), inside)):
        found = output(own, x[start:stop])
        (found**2).sum().backward()
    expected = output(whole, x)
    (expected**2).sum().backward()
    torch.testing.assert_close(found, expected[start:stop], rtol=1e-9, atol=1e-9)
    holders, wanted = find_holders(graph, group.size), dict(whole.named_parameters())
    assert {name for name, _ in own.named_parameters()} == {
        name for name in wanted if holders.get(name, group.place) == group.place
    }
    for name, weight in own.named_parameters():
        gradient = torch.zeros_like(weight) if weight.grad is None else weight.grad
        if name not in holders:
            dist.all_reduce(gradient, group=group.handle)
        of_whole = wanted[name].grad
        of_whole = torch.zeros_like(weight) if of_whole is None else of_whole
        torch.testing.assert_close(gradient, of_whole, rtol=1e-9, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}")


def output(model: Model, x: Tensor) -> Tensor:
    found = model.train()(x)
    assert isinstance(found, Tensor)
    return found


def run_all(tmp_path: Path, size: int, lowering: str | None, examples: int) -> None:
    def start() -> int:
        file = str(tmp_path / f"{size}-{lowering}-{examples}")
        work = [partial(compare, rank, size, file, lowering, examples) for rank in range(size)]
        codes = end_of(*(begun_in_a_child(each, 1, 2) for each in work), patience=60)
        return max(codes)

    code, text = output_of_child(start)
    assert code == 0, text


def test_two_processes_compute_what_one_does_also_without_an_example(tmp_path: Path) -> None:
    run_all(tmp_path, 2, None, 5)
    run_all(tmp_path, 2, None, 1)


@pytest.mark.slow
@pytest.mark.parametrize("lowering", ["per_module", "masked", "dense", "message_passing", "gathered"])
def test_all_lowerings_run_on_a_divided_pool(tmp_path: Path, lowering: str) -> None:
    run_all(tmp_path, 2, lowering, 5)


@pytest.mark.slow
def test_three_processes_compute_what_one_does(tmp_path: Path) -> None:
    run_all(tmp_path, 3, None, 7)


COUNTED = {
    "every module": "pool p[4] = linear(3) -> tanh y = x -> p output y",
    "rows": "pool p[4] = linear(3) -> tanh pool q[p] = linear(2) -> tanh y = x -> p -> q output y",
    "one module": "pool p[2] = linear(3) y = x -> p[1] output y",
    "weighted sums": "pool p[4] = linear(3) -> tanh y = x -> p by (x -> linear(p) -> softmax) output y",
    "all by choice": "pool p[2] = linear(3) s = x -> linear(p) "
    "y = x -> p by ((s, s -> top_k(2)) -> masked_softmax) output y",
    "steps": "pool p[2] = linear(4) scan x as step with h: float[4] { s = step -> linear(p) "
    "h = h + (step -> p by ((s, s -> top_k(2)) -> masked_softmax)) yield h } as y output y",
}


def count_bytes(rank: int, file: str) -> int:
    """Compare the bytes that leave two processes with what `cost` says."""
    group, counts = join(rank, 2, file), [0]
    plain = exchange.send_rows

    def send_rows(x: Tensor, going: Sequence[int], coming: Sequence[int], group: Group) -> Tensor:
        if x.is_floating_point():
            leaving = sum(going) - going[group.place]
            counts[0] += leaving * x[:1].reshape(-1).numel() * 8 if len(x) else 0
        return plain(x, going, coming, group)

    experts, own = Experts(2, 2, rank), {f"of {rank}": torch.full((2,), float(rank))}
    whole = {name: each.tolist() for name, each in experts.gather(own, torch.device("cpu"), keep=rank == 0).items()}
    assert whole == ({"of 0": [0.0, 0.0], "of 1": [1.0, 1.0]} if rank == 0 else {"of 1": [1.0, 1.0]})
    exchange.send_rows = send_rows  # type: ignore[assignment]
    step = TrainingStep(precision="float64")
    for name, body in COUNTED.items():
        counts[0] = 0
        compare_one(group, f"{HEAD}{body} }}", None, 4)
        every: list[int] = [0, 0]
        dist.all_gather_object(every, counts[0])
        parts = divide_cost(loads(f"{HEAD}{body} }}").ir, {}, 2, 2, step, "ddp")
        expected = 4 * sum(each.exchanged for each in parts.values())
        if sum(every) != expected:
            print(f"{name}: {sum(every)} bytes are sent, and cost says {expected}", flush=True)
            return 1
    return 0


def test_cost_says_how_many_bytes_leave_a_process(tmp_path: Path) -> None:
    def start() -> int:
        work = [partial(count_bytes, rank, str(tmp_path / "file")) for rank in range(2)]
        return max(end_of(*(begun_in_a_child(each, 1, 2) for each in work), patience=60))

    code, text = output_of_child(start)
    assert code == 0, text


def test_places_are_divided_evenly_and_a_small_pool_is_whole_everywhere() -> None:
    assert divide_places(5, 2) == [range(2), range(2, 5)]
    assert divide_places(2, 3) == [range(2)] * 3
    assert divide_places(4, 1) == [range(4)]
    graph = loads(f"{HEAD}{ROUTES['unlike modules']} }}").ir
    assert find_holders(graph, 2) == {
        "p.0.linear.weight": 0,
        "p.0.linear.bias": 0,
        "p.1.linear.weight": 1,
        "p.1.linear.bias": 1,
        "p.1.linear2.weight": 1,
        "p.1.linear2.bias": 1,
    }
    model = build(graph, group=Group(2, 1, None))
    assert isinstance(model.p, DividedPool)
    assert [name for name, _ in model.p.named_children()] == ["1", "2"], "modules keep their places as names"
