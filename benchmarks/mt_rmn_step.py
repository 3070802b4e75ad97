"""Compares a training step of MT-RMN with the same networks in plain torch, without policies and routing.

    python benchmarks/mt_rmn_step.py [--quick] [--rounds 60] [--batch 32] [--threads 1] [--profile]

The three architectures of the paper's table are attached to an LSTM that the tasks share. In the plain model each layer
runs on the mean of the layer below, and each task's decoders on the mean of each layer; recurrent layers and MLPs are
torch's. "unrouted" also runs the policies' MLPs and ignores their results. "by hand" also samples noise and gates by
the policies, written in torch for this architecture only. A step is forward, backward and the engine's Adam. The models
take turns, a ratio is the median over rounds, and time is processor time, which is robust against other processes.
Goal: 1.3 of "unrouted".
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from options import parse_options
from torch import Tensor, nn

import modgraph
from modgraph.recipes.optimizers import Adam

SPEC = "specs/mt_rmn.mod"
WARM = 3


@dataclass(frozen=True)
class Architecture:
    """A row of the table, for sequences of so many steps."""

    tasks: int
    features: int
    time: int
    cells: int
    hidden: int
    widths: tuple[int, ...]
    classes: int
    every_step: bool = False
    layers: tuple[int, ...] = (3, 3)
    state: int = field(default=16)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the spec."""
        widths = [*self.widths]
        return {
            "tasks": [f"t{at}" for at in range(self.tasks)],
            "classes": [self.classes] * self.tasks,
            "features": self.features,
            "every_step": self.every_step,
            "state": self.state,
            "cells": self.cells,
            "hidden": self.hidden,
            "layers": [*self.layers],
            "widths": widths,
            "policies": widths,
            "decoders": widths,
        }


ARCHITECTURES = {
    "task-fMRI": Architecture(4, 10, 28, 4, 5, (5, 5), classes=7),
    "tagging": Architecture(3, 50, 24, 3, 50, (32, 32), classes=17, every_step=True, state=50),
    "clinical": Architecture(4, 76, 48, 4, 256, (128, 128), classes=2, state=256),
}


def mlp(width: int, widths: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in zip((width, *widths), widths, strict=False):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers)


class Plain(nn.Module):
    """The same recurrent layers and MLPs, every connection open."""

    def __init__(self, of: Architecture) -> None:
        super().__init__()
        self.of, inner = of, of.widths[-1]
        self.shared = nn.LSTM(of.features, of.state, batch_first=True)
        self.cells = nn.ModuleList(nn.LSTM(of.features, of.hidden, batch_first=True) for _ in range(of.cells))
        widths = (of.hidden, *[inner] * (len(of.layers) - 1))
        self.layers = nn.ModuleList(
            nn.ModuleList(mlp(width, of.widths) for _ in range(count))
            for width, count in zip(widths, of.layers, strict=True)
        )
        self.decoders = nn.ModuleList(nn.ModuleList(mlp(inner, of.widths) for _ in of.layers) for _ in range(of.tasks))
        joined = of.state + inner * len(of.layers)
        self.heads = nn.ModuleList(nn.Linear(joined, of.classes) for _ in range(of.tasks))

    def forward(self, x: Tensor, labels: Sequence[Tensor]) -> Tensor:
        """Compute the sum of the tasks' losses."""
        state = self.shared(x)[0]
        made = torch.stack([cell(x)[0] for cell in self.cells], dim=-2)
        averages = []
        for layer in self.layers:
            below = made.mean(-2)
            made = torch.stack([module(below) for module in layer], dim=-2)
            averages.append(made.mean(-2))
        reads = [[decoder(mean) for decoder, mean in zip(each, averages, strict=True)] for each in self.decoders]
        return self.loss(state, reads, labels)

    def loss(self, state: Tensor, reads: Sequence[Sequence[Tensor]], labels: Sequence[Tensor]) -> Tensor:
        """Compute the sum of the tasks' losses from their decoders' inputs."""
        losses = []
        for read, head, label in zip(reads, self.heads, labels, strict=True):
            y = torch.cat((state, *read), dim=-1)
            logits = head(y if self.of.every_step else y[:, -1])
            losses.append(F.cross_entropy(logits.flatten(0, -2), label.flatten()))
        return torch.stack(losses).sum()


class ByHand(Plain):
    """MT-RMN in plain torch: every policy on every sender, gates with noise and straight-through gradients."""

    def __init__(self, of: Architecture) -> None:
        super().__init__(of)
        inner = of.widths[-1]
        widths = (of.hidden, *[inner] * (len(of.layers) - 1))
        self.policies = nn.ModuleList(
            nn.ModuleList(policy(width, of.widths) for _ in range(count))
            for width, count in zip(widths, of.layers, strict=True)
        )
        self.reading = nn.ModuleList(policy(inner, of.widths) for _ in range(of.tasks))

    def forward(self, x: Tensor, labels: Sequence[Tensor]) -> Tensor:
        state = self.shared(x)[0]
        made = torch.stack([cell(x)[0] for cell in self.cells], dim=-2)
        layers = []
        for layer, policies in zip(self.layers, self.policies, strict=True):
            below = made
            made = torch.stack([each(self.read(below, own)) for each, own in zip(layer, policies, strict=True)], dim=-2)
            layers.append(made)
        tasks = zip(self.decoders, self.reading, strict=True)
        reads = [[each(self.read(made, own)) for each, made in zip(of, layers, strict=True)] for of, own in tasks]
        return self.loss(state, reads, labels)

    def read(self, made: Tensor, policy: nn.Module) -> Tensor:
        """Compute the mean [..., D] over those rows of `made` [..., S, D] that a policy connects."""
        scores = policy(made)
        noisy = scores - torch.empty_like(scores).exponential_().log()
        soft = (noisy / 100).softmax(-1)[..., 1]
        gates = (noisy[..., 1] > noisy[..., 0]).to(soft.dtype) + soft - soft.detach()
        return (gates.unsqueeze(-1) * made).sum(-2) / gates.sum(-1, keepdim=True).clamp(min=1)


class Unrouted(ByHand):
    """The same networks with policies, every connection open."""

    def read(self, made: Tensor, policy: nn.Module) -> Tensor:
        return made.mean(-2) + 0 * policy(made).mean()


def policy(width: int, widths: Sequence[int]) -> nn.Sequential:
    return nn.Sequential(*mlp(width, widths), nn.Linear(widths[-1], 2))


def step_of(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    """Make a training step on one fixed batch."""
    optimizer = torch.optim.Adam(model.parameters(), **Adam().arguments())
    model.train()

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def steps_of(of: Architecture, batch: int, spec: str) -> dict[str, Callable[[], None]]:
    """Make our step, and those in torch."""
    x = torch.randn(batch, of.time, of.features)
    shape = (batch, of.time) if of.every_step else (batch,)
    labels = [torch.randint(of.classes, shape) for _ in range(of.tasks)]
    given = {"series": x, "time_length": torch.full((batch,), of.time)}
    given |= {f"label.t{at}": label for at, label in enumerate(labels)}
    ours = modgraph.load(spec, **of.parameters).build()
    others = {"plain": Plain(of), "unrouted": Unrouted(of), "by hand": ByHand(of)}
    return {
        "ours": step_of(ours, lambda: ours.compute(given).loss),
        **{name: step_of(model, partial(model, x, labels)) for name, model in others.items()},
    }


def seconds(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def compare(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Measure the seconds of all rounds; each is first in turn."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for round_ in range(rounds + WARM):
        first = round_ % len(steps)
        for name in [*steps][first:] + [*steps][:first]:
            taken = seconds(steps[name])
            if round_ >= WARM:
                times[name].append(taken)
    return times


def ratio(times: dict[str, list[float]], of: str, to: str) -> float:
    return statistics.median(a / b for a, b in zip(times[of], times[to], strict=True))


def profile(step: Callable[[], None]) -> None:
    with torch.profiler.profile() as found:
        for _ in range(5):
            step()
    print(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=25, max_name_column_width=40))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", default=[*ARCHITECTURES], help="task-fMRI, tagging, clinical")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--spec", default=SPEC)
    parser.add_argument("--profile", action="store_true", help="profile our step")
    options = parse_options(parser, names=["clinical"], rounds=1, batch=2)
    torch.set_num_threads(options.threads)
    print(f"batch {options.batch}, ms       ours    plain unrouted  by hand   ours to each of these")
    for name in options.names:
        steps = steps_of(ARCHITECTURES[name], options.batch, options.spec)
        times = compare(steps, options.rounds)
        taken = " ".join(f"{1000 * statistics.median(each):8.1f}" for each in times.values())
        ratios = (ratio(times, "ours", other) for other in times if other != "ours")
        print(f"{name:12} {taken} " + " ".join(f"{each:8.2f}" for each in ratios), flush=True)
        if options.profile:
            profile(steps["ours"])


if __name__ == "__main__":
    main()
