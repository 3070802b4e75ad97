"""Count parameters and multiply-accumulates per example, in all and by node, and measure a training step's memory."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from modgraph.cli.common import add_overrides, overrides, warn
from modgraph.cli.lengths import add_lengths, is_count, read_lengths
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.files import exists
from modgraph.inspect.cost import axes_of_any_length, check_lengths, cost_of
from modgraph.inspect.cost_text import Heading, count_lines, fits_line, memory_lines
from modgraph.inspect.memory import Memory, TrainingStep
from modgraph.recipes.optimizers import Optimizer
from modgraph.store.opened import Kind, Opened, opened
from modgraph.training.sections import Train, default_train, read_parameters, read_train

SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) *([kmgtp]?)(i?)b?", re.IGNORECASE | re.ASCII)


class BadBatch(Diagnostic):
    """`cost --batch` takes how many examples a training step has."""

    code = "MG830"
    message = '--batch takes a whole number from 1 to 999999999, not "{given}"'
    help = "for example: --batch 64"


class NoSuchOptimizer(Diagnostic):
    """`cost --optimizer` takes an optimizer by its name, with its settings as they are by default."""

    code = "MG831"
    message = 'there is no optimizer "{name}"'
    help = "{suggestion}"


class BadSize(Diagnostic):
    """`cost --fits` takes a size of memory: a number and a unit of thousands (GB) or of 1024 (GiB)."""

    code = "MG832"
    message = '--fits takes a size of memory, not "{given}"'
    help = "for example: --fits 24GB, or in powers of 1024: --fits 24GiB"


@dataclass(frozen=True)
class Training:
    """The training whose step is counted; `recipe` is where it was read, but for what the command line `changed`."""

    train: Train
    batch: int
    recipe: Path | None = None
    changed: bool = False

    def step(self, batch: int) -> TrainingStep:
        """A step of so many examples."""
        optimizer, tried = self.train.optimizer, self.train.algorithm.tried_at_once(batch)
        work = optimizer.state_per_weight, optimizer.work_per_weight
        return TrainingStep(batch, *work, self.train.precision, tried)

    def facts(self) -> list[str]:
        """What a step is counted with, in words."""
        optimizer, algorithm, by = self.train.optimizer, self.train.algorithm, self.train.by
        of_each = f" (of each {by}: give all of them by --batch)" if by else ""
        tried = algorithm.tried_at_once(self.batch)
        beside = [f"{algorithm.name} that tries {tried:,} at once"] if tried else []
        where = [] if self.recipe is None else [f"{'else ' if self.changed else ''}as {self.recipe} says"]
        return [f"a batch of {self.batch:,}{of_each}", optimizer.name, self.train.precision, *beside, *where]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC|RUN|CHECKPOINT|BUNDLE")
    add_overrides(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--all", action="store_true", help="every node, equal repetitions too")
    add_lengths(parser)
    parser.add_argument(
        "--memory", action="store_true", help="what a training step holds in memory; so do these three:"
    )
    parser.add_argument("--batch", metavar="N", help="examples of a training step (as the recipe says, or 1)")
    parser.add_argument("--fits", metavar="SIZE", help="how large a batch may be that fits, as in 24GB or 80GiB")
    parser.add_argument("--optimizer", metavar="NAME", help="what moves the weights (as the recipe says, or adam)")


def run(options: argparse.Namespace) -> int:
    found, asked = opened(options.spec, overrides(options)), read_lengths(options.length)
    warn(found)
    check_lengths(found.graph, asked)
    lengths = dict.fromkeys(axes_of_any_length(found.graph), 1) | asked
    cost = cost_of(found.graph, lengths)
    measured = _measured(found, options, lengths)
    if options.json:
        memory = {} if measured is None else {"memory": measured.as_json()}
        print(json.dumps({**cost.as_json(), "lengths": lengths, **memory}, indent=2))
        return 0
    heading = Heading(found.graph.name, _origin(found), _parameters(found, options), lengths, frozenset(asked))
    counts = count_lines(cost, None if options.all else found.graph)
    memory_ = [] if measured is None else ["", *measured.lines()]
    print("\n".join([*heading.lines(), *counts, *memory_]))
    return 0


@dataclass(frozen=True)
class Measured:
    """The memory of a step of a training, and where a size was asked for, the largest batch that fits."""

    memory: Memory
    training: Training
    size: int | None = None
    batch: int = 0

    def as_json(self) -> dict[str, Any]:
        fits = {} if self.size is None else {"fits": {"bytes": self.size, "batch": self.batch}}
        return {**asdict(self.memory), **fits}

    def lines(self) -> list[str]:
        fits = [] if self.size is None else [fits_line(self.size, self.batch)]
        return [*memory_lines(self.memory, self.training.facts()), *fits]


def _measured(found: Opened, options: argparse.Namespace, lengths: Mapping[str, int]) -> Measured | None:
    """What is asked of the memory of a training step, if anything is."""
    if not options.memory and (options.batch, options.fits, options.optimizer) == (None, None, None):
        return None
    training, size = _training(found, options), _size(options.fits)
    from modgraph.backends.torch.step_memory import largest_batch, memory_of

    memory = memory_of(found.graph, training.step(training.batch), lengths)
    if size is None:
        return Measured(memory, training)
    return Measured(memory, training, size, largest_batch(found.graph, training.step, lengths, size))


def _origin(found: Opened) -> str:
    return str(found.path) if found.kind is Kind.SPEC else f"the {found.kind} {found.path}"


def _parameters(found: Opened, options: argparse.Namespace) -> Mapping[str, Any]:
    """The parameters that were set; of a bundle, which does not tell, all of them."""
    if found.run is not None:
        return read_parameters(found.run.recipe)
    return overrides(options) if found.kind is Kind.SPEC else found.graph.parameters


def _training(found: Opened, options: argparse.Namespace) -> Training:
    """The training that a recipe describes: a run's, or that beside a spec; options come before it."""
    recipe = _recipe(found)
    train = default_train() if recipe is None else read_train(recipe)
    batch = 1 if recipe is None else train.batch
    if options.optimizer is not None:
        train = replace(train, optimizer=_optimizer(options.optimizer))
    if options.batch is not None:
        train, batch = replace(train, by=None), _batch(options.batch)
    return Training(train, batch, recipe, changed=options.batch is not None or options.optimizer is not None)


def _recipe(found: Opened) -> Path | None:
    if found.run is not None:
        return found.run.recipe
    beside = found.path.with_suffix(".yaml")
    return beside if found.kind is Kind.SPEC and exists(beside) else None


def _optimizer(name: str) -> Optimizer:
    kind = Optimizer.registry.find(name)
    if kind is None:
        suggestion = did_you_mean(name, Optimizer.registry, "they are: {known}")
        raise ModgraphError([NoSuchOptimizer(name=name, suggestion=suggestion)])
    return kind()


def _batch(given: str) -> int:
    if not is_count(given):
        raise ModgraphError([BadBatch(given=given)])
    return int(given)


def _size(given: str | None) -> int | None:
    """The bytes of a size in words."""
    if given is None:
        return None
    found = SIZE.fullmatch(given.strip())
    if found is None:
        raise ModgraphError([BadSize(given=given)])
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** (" kmgtp".index(unit.lower() or " ")))
