"""Count parameters, multiply-accumulates per example and the memory of a training step, in all and by node."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from modgraph.cli.common import add_overrides, overrides, warn
from modgraph.cli.lengths import add_lengths, is_count, read_lengths
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.files import exists
from modgraph.inspect.cost import axes_of_any_length, check_lengths, cost_of
from modgraph.inspect.cost_text import Heading, count_lines, memory_lines
from modgraph.inspect.memory import memory_of
from modgraph.store.opened import Kind, Opened, opened
from modgraph.training.optimizers import Optimizer
from modgraph.training.sections import Train, default_train, read_parameters, read_train


class BadBatch(Diagnostic):
    """`cost --batch` takes how many examples a training step has."""

    code = "MG830"
    message = '--batch takes a whole number from 1 to 999999999, not "{given}"'
    help = "for example: --batch 64"
    given: str


class NoSuchOptimizer(Diagnostic):
    """`cost --optimizer` takes an optimizer by its name, with its settings as they are by default."""

    code = "MG831"
    message = 'there is no optimizer "{name}"'
    help = "{suggestion}"
    name: str
    suggestion: str


@dataclass(frozen=True)
class Training:
    """The training whose step is counted, and where its batch was read."""

    train: Train
    batch: int
    origin: str = ""

    def facts(self) -> list[str]:
        """What a step is counted with, in words."""
        of_each = f" (of each {self.train.by}: give all of them by --batch)" if self.origin and self.train.by else ""
        batch = f"a batch of {self.batch:,}{of_each}"
        where = [f"as {self.origin} says"] if self.origin else []
        return [batch, self.train.optimizer.name, self.train.precision, *where]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC|RUN|BUNDLE")
    add_overrides(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--all", action="store_true", help="every node, equal repetitions too")
    add_lengths(parser)
    parser.add_argument("--batch", metavar="N", help="examples of a training step (as the recipe says, or 1)")
    parser.add_argument("--optimizer", metavar="NAME", help="what moves the weights (as the recipe says, or adam)")


def run(options: argparse.Namespace) -> int:
    found, asked = opened(options.spec, overrides(options)), read_lengths(options.length)
    warn(found)
    check_lengths(found.graph, asked)
    training = _training(found, options)
    lengths = dict.fromkeys(axes_of_any_length(found.graph), 1) | asked
    cost = cost_of(found.graph, lengths)
    memory = memory_of(found.graph, training.batch, training.train.optimizer.state_per_weight, training.train.precision)
    if options.json:
        print(json.dumps({**cost.as_json(), "lengths": lengths, "memory": memory.as_json()}, indent=2))
        return 0
    heading = Heading(found.graph.name, _origin(found), _parameters(found, options), lengths, frozenset(asked))
    parts = heading.lines(), count_lines(cost, folded=not options.all), [""], memory_lines(memory, training.facts())
    print("\n".join(line for lines in parts for line in lines))
    return 0


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
    if options.optimizer is not None:
        train = replace(train, optimizer=_optimizer(options.optimizer))
    if options.batch is not None:
        return Training(train, _batch(options.batch))
    return Training(train, 1) if recipe is None else Training(train, train.batch, str(recipe))


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
