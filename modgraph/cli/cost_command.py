"""Count parameters and multiply-accumulates, and measure the memory of a training step."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from modgraph.cli.common import ARCHITECTURE, add_options, is_count, open_architecture, read_lengths, read_overrides
from modgraph.diagnostics import Diagnostic, ModgraphError, did_you_mean
from modgraph.files import exists
from modgraph.inspect.caches import count_caches
from modgraph.inspect.cost import TrainingStep, check_lengths, compute_cost, list_axes_of_any_length
from modgraph.inspect.cost_text import (
    fits_line,
    format_counts,
    format_division,
    format_heading,
    format_memory,
)
from modgraph.inspect.division import divide_cost
from modgraph.recipes.optimizers import Optimizer
from modgraph.store.architecture import Architecture, Kind
from modgraph.training.fit import find_unfit_pools
from modgraph.training.sections import Train, read_parameters, read_train

SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) *([kmgtp]?)(i?)b?", re.IGNORECASE | re.ASCII)


class BadBatch(Diagnostic, code="MG830"):
    """`cost --batch` takes the number of examples of a training step."""

    message = '--batch must be a whole number from 1 to 999999999, not "{given}"'
    help = "for example: --batch 64"


class NoSuchOptimizer(Diagnostic, code="MG831"):
    """`cost --optimizer` takes the name of an optimizer, with its default settings."""

    message = 'unknown optimizer "{name}"'
    help = "{suggestion}"


class BadSize(Diagnostic, code="MG832"):
    """`cost --fits` takes a size of memory: a number and a unit of thousands (GB) or of 1024 (GiB)."""

    message = '--fits must be a size of memory, not "{given}"'
    help = "for example: --fits 24GB, or in powers of 1024: --fits 24GiB"


class BadProcesses(Diagnostic, code="MG882"):
    """`cost --processes` takes the number of processes of a training, `--experts` how many of them divide each pool:
    this number divides that of the processes."""

    message = "{problem}"
    help = "for example: --processes 8 --experts 4"


USAGE = ("modgraph cost mine.mod", "modgraph cost mine.mod --fits 8GB")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "spec",
        metavar="SPEC|RUN|CHECKPOINT|BUNDLE",
        help=ARCHITECTURE,
    )
    add_options(parser, "set", "json")
    parser.add_argument("--all", action="store_true", help="every node, also equal repetitions")
    add_options(parser, "length")
    memory = "the memory of a training step; also printed with these three:"
    parser.add_argument("--memory", action="store_true", help=memory)
    parser.add_argument("--batch", metavar="N", help="examples of a training step (the recipe's, or 1)")
    parser.add_argument("--fits", metavar="SIZE", help="the largest batch that fits, for example 24GB or 80GiB")
    parser.add_argument("--optimizer", metavar="NAME", help="the optimizer (the recipe's, or adam)")
    parser.add_argument("--processes", metavar="N", help="what each of several processes of a training holds and sends")
    parser.add_argument("--experts", metavar="N", help="processes that divide each pool (the recipe's, or 1)")


def run(options: argparse.Namespace) -> int:
    found, asked = open_architecture(options.spec, options), read_lengths(options.length)
    check_lengths(found.graph, asked)
    lengths = dict.fromkeys(list_axes_of_any_length(found.graph), 1) | asked
    cost = compute_cost(found.graph, lengths)
    memory, lines = dict[str, Any](), list[str]()
    if options.memory or (options.batch, options.fits, options.optimizer) != (None, None, None):
        memory, lines = _measure_step(found, options, lengths)
    if options.processes is not None or options.experts is not None:
        divided, more = _divide(found, options, lengths)
        memory, lines = memory | divided, [*lines, "", *more]
    caches = count_caches(found.graph)
    if options.json:
        kept = {} if caches is None else {"cache": caches.as_json()}
        print(json.dumps({**cost.as_json(), "lengths": lengths, **kept, **memory}, indent=2))
        return 0
    # a bundle does not say which parameters were set
    parameters: Mapping[str, Any] = (
        read_overrides(options.set, options.spec) if found.kind is Kind.SPEC else found.graph.parameters
    )
    if found.run is not None:
        parameters = read_parameters(found.run.recipe)
    origin = str(found.path) if found.kind is Kind.SPEC else f"the {found.kind} {found.path}"
    heading = format_heading(f"{found.graph.name}, from {origin}", parameters, lengths, asked)
    counts = format_counts(found.graph, cost, caches, fold=not options.all)
    print("\n".join([*heading, *counts, *lines]))
    return 0


def _measure_step(
    found: Architecture, options: argparse.Namespace, lengths: Mapping[str, int]
) -> tuple[dict[str, Any], list[str]]:
    """The memory of a training step, as JSON and in lines."""
    train, batch, where = _read_step(found, options)
    size = None if options.fits is None else _bytes(options.fits)
    from modgraph.backends.torch.step_memory import find_largest_batch, memory_of

    def step(batch: int) -> TrainingStep:
        work = train.optimizer.numbers_per_weight
        return TrainingStep(batch, *work, train.precision, train.algorithm.count_trials(batch))

    memory = memory_of(found.graph, step(batch), lengths)
    tried = train.algorithm.count_trials(batch)
    facts = [f"a batch of {batch:,}" + (f" (of each {train.by}: give all of them by --batch)" if train.by else "")]
    facts += [train.optimizer.name, train.precision]
    facts += [f"{train.algorithm.name} that tries {tried:,} at once"] if tried else []
    lines = ["", *format_memory(memory, [*facts, *where])]
    if size is None:
        return {"memory": asdict(memory)}, lines
    largest = find_largest_batch(found.graph, step, lengths, size)
    fits = {"bytes": size, "batch": largest}
    return {"memory": {**asdict(memory), "fits": fits}}, [*lines, fits_line(size, largest)]


def _divide(
    found: Architecture, options: argparse.Namespace, lengths: Mapping[str, int]
) -> tuple[dict[str, Any], list[str]]:
    """What each of several processes holds and sends, as JSON and in lines. Raises `ModgraphError`."""
    train, batch, where = _read_step(found, options)
    for name in ("processes", "experts"):
        given = getattr(options, name)
        if given is not None and not is_count(given):
            raise ModgraphError([BadProcesses(problem=f'--{name} must be a whole number from 1, not "{given}"')])
    if options.processes is None:
        raise ModgraphError([BadProcesses(problem="--experts needs --processes")])
    processes, experts = int(options.processes), int(options.experts or train.experts)
    if processes % experts:
        raise ModgraphError([BadProcesses(problem=f"{experts} experts do not divide {processes} processes")])
    if unfit := [*find_unfit_pools(found.graph, experts)]:
        raise ModgraphError(unfit)
    step = TrainingStep(batch, *train.optimizer.numbers_per_weight, train.precision)
    parts = divide_cost(found.graph, lengths, processes, experts, step, train.strategy)
    facts: dict[str, Any] = {"processes": processes, "experts": experts, "strategy": train.strategy, "batch": batch}
    costs = {name: {**asdict(each), "step": each.count_step(batch, processes)} for name, each in parts.items()}
    facts["rest"], facts["pools"] = costs.pop(""), costs
    division = f"{experts:,} of which divide each pool" if experts > 1 else "each with all modules"
    words = [division, train.strategy, f"a batch of {batch:,}", train.optimizer.name, train.precision, *where]
    return {"division": facts}, format_division(parts, words, batch, processes)


def _read_step(found: Architecture, options: argparse.Namespace) -> tuple[Train, int, list[str]]:
    """Read how to train, the batch, and where both come from: the recipe of a run or next to a spec. Options come
    before it."""
    recipe = found.run.recipe if found.run is not None else found.path.with_suffix(".yaml")
    if found.run is None and not (found.kind is Kind.SPEC and exists(recipe)):
        train, batch, where = read_train(), 1, []
    else:
        train = read_train(recipe)
        is_changed = options.batch is not None or options.optimizer is not None
        batch, where = train.batch, [f"{'else ' if is_changed else ''}as {recipe} says"]
    if options.optimizer is not None:
        kind = Optimizer.registry.find(options.optimizer)
        if kind is None:
            suggestion = did_you_mean(options.optimizer, Optimizer.registry, "optimizers are: {known}")
            raise ModgraphError([NoSuchOptimizer(name=options.optimizer, suggestion=suggestion)])
        train = replace(train, optimizer=kind())
    if options.batch is not None:
        if not is_count(options.batch):
            raise ModgraphError([BadBatch(given=options.batch)])
        train, batch = replace(train, by=None), int(options.batch)
    return train, batch, where


def _bytes(given: str) -> int:
    found = SIZE.fullmatch(given.strip())
    if found is None:
        raise ModgraphError([BadSize(given=given)])
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** (" kmgtp".index(unit.lower() or " ")))
