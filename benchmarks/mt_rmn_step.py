"""A training step of MT-RMN against the same networks in plain torch, without policies and without routing.

    python benchmarks/mt_rmn_step.py [--rounds 60] [--batch 32] [--threads 1] [--profile]

The three architectures of the paper's table, each attached to an LSTM that its tasks share. In the plain model each layer
runs on the mean of the layer below, and each task's decoders on the mean of each layer; recurrent layers and MLPs are
torch's. A step is forward, backward and the engine's Adam; the two take turns, and a ratio is the median over rounds. Goal: 1.5.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
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
        """Those of the spec."""
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
        self.decoders = nn.ModuleList(
            nn.ModuleList(mlp(inner, of.widths) for _ in of.layers) for _ in range(of.tasks)
        )
        joined = of.state + inner * len(of.layers)
        self.heads = nn.ModuleList(nn.Linear(joined, of.classes) for _ in range(of.tasks))

    def forward(self, x: Tensor, labels: Sequence[Tensor]) -> Tensor:
        """The sum of the tasks' losses."""
        state = self.shared(x)[0]
        made = torch.stack([cell(x)[0] for cell in self.cells], dim=-2)
        means = []
        for layer in self.layers:
            below = made.mean(-2)
            made = torch.stack([module(below) for module in layer], dim=-2)
            means.append(made.mean(-2))
        losses = []
        for decoders, head, label in zip(self.decoders, self.heads, labels, strict=True):
            read = [decoder(mean) for decoder, mean in zip(decoders, means, strict=True)]
            y = torch.cat((state, *read), dim=-1)
            logits = head(y if self.of.every_step else y[:, -1])
            losses.append(F.cross_entropy(logits.flatten(0, -2), label.flatten()))
        return torch.stack(losses).sum()


def step_of(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
    """A training step on always the same batch."""
    optimizer = torch.optim.Adam(model.parameters(), **Adam().arguments())
    model.train()

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


def steps_of(of: Architecture, batch: int, spec: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """Ours and the plain one's."""
    x = torch.randn(batch, of.time, of.features)
    shape = (batch, of.time) if of.every_step else (batch,)
    labels = [torch.randint(of.classes, shape) for _ in range(of.tasks)]
    given = {"series": x, "time_length": torch.full((batch,), of.time)}
    given |= {f"label.t{at}": label for at, label in enumerate(labels)}
    ours = modgraph.load(spec, **of.parameters).build()
    plain = Plain(of)
    return step_of(ours, lambda: ours.compute(given).loss), step_of(plain, lambda: plain(x, labels))


def seconds(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def compare(ours: Callable[[], None], plain: Callable[[], None], rounds: int) -> tuple[float, float, float]:
    """Milliseconds of both, and the median of the ratios; each is first every other time."""
    times = []
    for round_ in range(rounds + WARM):
        pair = {which: seconds(which) for which in ((ours, plain) if round_ % 2 else (plain, ours))}
        if round_ >= WARM:
            times.append((pair[ours], pair[plain]))
    mine, theirs = (1000 * statistics.median(column) for column in zip(*times, strict=True))
    return mine, theirs, statistics.median(a / b for a, b in times)


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
    parser.add_argument("--profile", action="store_true", help="what a step of ours is made of")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"batch {options.batch}: {'':8} ours ms   plain ms  ratio")
    for name in options.names:
        ours, plain = steps_of(ARCHITECTURES[name], options.batch, options.spec)
        found = compare(ours, plain, options.rounds)
        print(f"{name:14} {found[0]:10.1f} {found[1]:10.1f} {found[2]:6.2f}", flush=True)
        if options.profile:
            profile(ours)


if __name__ == "__main__":
    main()
