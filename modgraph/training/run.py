"""Runs: begin, resume, migrate and finish them, and report lack of memory and lost processes."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from modgraph_runtime.files import format_bytes

from modgraph.data import TRAIN, Arrays, DataSet
from modgraph.data.declaration import refuse_unreadable
from modgraph.data.errors import DataChanged
from modgraph.data.fingerprint import Fingerprint, as_json
from modgraph.diagnostics import ModgraphError, Report, Source, render_all
from modgraph.elaboration import Imports, elaborate
from modgraph.files import exists, explain_error
from modgraph.inspect.diff import Comparison
from modgraph.ir import Graph, NotReadBack
from modgraph.log import log
from modgraph.metrics.confusion import Confusion, name_rows
from modgraph.program import Program
from modgraph.store.checkpoint import Checkpoint
from modgraph.store.journal import LOGS, check_logs, seal_logs
from modgraph.store.matrices import Matrices, Matrix, keep_confusion
from modgraph.store.records import finite, json_text
from modgraph.store.run_directory import CHANGED, FINISHED, STARTED, RunDirectory, locate_recipe
from modgraph.syntax import parse
from modgraph.training.algorithms.algorithm import Curriculum, Setup
from modgraph.training.callbacks import Watch
from modgraph.training.carry_over import Carried, carry_over, freeze_as_before, rename_routes
from modgraph.training.compiled import refuse_without_compiler
from modgraph.training.engine import Engine
from modgraph.training.errors import ProcessLost, TooLargeForMemory
from modgraph.training.fit import find_next_token_leaks, refuse_unfit
from modgraph.training.losses import weigh_losses
from modgraph.training.named_parts import check_monitored, ignore_labels, refuse_unlabelled, weigh_classes
from modgraph.training.processes import Processes, refuse_experts
from modgraph.training.recipe import (
    OPTION,
    Recipe,
    RecipeOrPath,
    key_overrides,
    read_recipe,
    read_with_spec,
    with_validation,
)
from modgraph.training.sections import Train
from modgraph.training.stages import take_weights
from modgraph.training.start.errors import CannotStart
from modgraph.training.start.inherit import Beginning, Inherited, inherit_file, inherit_run
from modgraph.training.start.weight_map import read_map
from modgraph.training.state import refusing_damage
from modgraph.training.stored_run import StoredRun, load_run, unseen

Splits = Mapping[str, Arrays]
NOBODY = Watch()
BYTES = re.compile(r"you tried to allocate (\d+) bytes")  # torch's message for the processor's memory
OF_PEERS = ("gloo/", "by peer", "broken pipe", "nccl")  # in the text of plain errors of torch's transports


def start_run(
    spec: str | Path | Program,
    given: RecipeOrPath | None,
    overrides: Mapping[str, Any],
    out: str | Path | None,
    data: DataSet | None = None,
    watch: Watch = NOBODY,
    overrides_name: str = OPTION,
) -> AbstractContextManager[Engine]:
    """Begin a training of a spec, or of a program that was read from one; its run directory is created and locked.
    `data` replace those of the recipe; messages call overrides by `overrides_name`. Raises `ModgraphError`."""
    path = path_of(spec)
    base = _recipe_of(given, path, data)
    recipe, program = read_with_spec(base, spec, key_overrides(overrides), data, overrides_name)
    directory = RunDirectory(Path(out or f"runs/{program.ir.name if path is None else path.stem}"))
    directory.refuse_existing()
    check_kept_spec(program, directory)
    weight_map = read_map(recipe.start.map, program.ir) if recipe.start and recipe.start.map else None

    def inherit(engine: Engine, splits: Splits) -> Inherited | None:
        start, state = recipe.start, engine.state
        if start is None:
            return None
        own = state.weights
        if start.run is not None:
            if not RunDirectory(Path(start.run)).record.exists():
                way_out = "train it first, or name another: -s start.run=DIR"
                raise ModgraphError([CannotStart(path=start.run, reason="no such run", way_out=way_out)])
            weights = load_run(start.run).checkpoint().weights
            found = inherit_run(state.graph, own, start.run, weights, start.fresh)
        else:
            assert start.weights is not None and weight_map is not None, "the recipe is checked"
            found = inherit_file(state.graph, own, start.weights, weight_map)
        take_weights(state.model, state.staged, own)
        return found

    return _begin(program, recipe, directory, inherit, watch)


def _recipe_of(given: RecipeOrPath | None, spec: Path | None, data: DataSet | None) -> RecipeOrPath:
    """Return the given recipe, or that of the spec; an empty one by default where data are given."""
    if given is not None:
        return given
    path = None if spec is None else locate_recipe(spec)
    return {} if path is None or (data is not None and not exists(path)) else path


def path_of(spec: str | Path | Program) -> Path | None:
    """Return the file of a spec; None for a program that was read from a string."""
    if not isinstance(spec, Program):
        return Path(spec)
    return None if spec.source is None or not exists(spec.source.name) else Path(spec.source.name)


def check_kept_spec(program: Program, directory: RunDirectory) -> None:
    """Raises `NotReadBack` unless the texts of a program's spec, which a run keeps, give its graph again."""
    assert program.standalone is not None, "the program was read from a text"
    report = Report()
    file = parse(Source(str(directory.spec), program.standalone.text), report)
    imports = Imports(directory.path, report, program.standalone.imports)
    found = None if file is None else elaborate(file, program.ir.parameters, report, imports=imports)
    if found is None or found.hash() != program.ir.hash():
        raise NotReadBack(f"the kept spec gives another graph, or none:\n{render_all(report.diagnostics)}")


def migrate_run(
    run: StoredRun, checkpoint: Checkpoint, recipe: Recipe, program: Program, plan: Comparison, out: str, restart: bool
) -> AbstractContextManager[Engine]:
    """Begin a run of another spec where a checkpoint of a run left it; with `restart`, or with other training examples,
    only with its weights. Raises `ModgraphError`."""
    directory, names = RunDirectory(Path(out)), {each.before: each.after for each in plan.diff.moved}
    check_kept_spec(program, directory)
    way_out = f"start a new run from these weights: modgraph train SPEC -s start.run={run.path}"
    same_data = recipe.data == run.recipe.data
    if same_data:
        run.refuse_changed(run.splits(), run.fingerprints, way_out)
    same_optimizer = type(recipe.train.optimizer) is type(run.recipe.train.optimizer)

    def carry(engine: Engine, splits: Splits) -> Carried:
        state, source = engine.state, str(run.path)
        learns_from = partial(Fingerprint.compute, recipe.data, splits[TRAIN])
        restarted = restart or not (same_data or engine.on_rank_zero(learns_from) == run.fingerprints.get(TRAIN))
        with refusing_damage(checkpoint):
            goes_on = same_optimizer and not restarted
            found, result = carry_over(checkpoint, state.graph, plan.weights, state.weights, source, goes_on)
            facts = checkpoint.facts["algorithm"]
        if restarted:
            take_weights(state.model, state.staged, found.weights)
            return replace(result, restarted=True)
        remembers = engine.begin_from(found, rename_routes(checkpoint.state, names), facts)
        epoch, step, steps = engine.progress.epoch_of_phase, engine.progress.step_of_phase, engine.order.steps
        if not 0 <= step - epoch * steps < steps:  # the number of examples does not allow this step
            change = f"gives {steps} steps an epoch, but after {epoch} epochs the run is at step {step}"
            raise ModgraphError([DataChanged(path=str(directory.path), split=TRAIN, change=change, way_out=way_out)])
        return replace(result, forgotten=not remembers)

    graph = freeze_as_before(program.ir, run.began_with, checkpoint.graph, names)
    return _begin(replace(program, ir=graph), recipe, directory, carry)


@contextmanager
def _begin(
    program: Program,
    recipe: Recipe,
    directory: RunDirectory,
    first: Callable[[Engine, Splits], Beginning | None],
    watch: Watch = NOBODY,
) -> Iterator[Engine]:
    """Create a run of a program in its folder; `first` may set its first weights. Raises `ModgraphError`."""
    assert program.standalone is not None, "it was read from a text"
    refuse_unfit(program.ir, recipe)
    labels = recipe.train.labels or {}
    graph = weigh_losses(ignore_labels(program.ir, labels), recipe.train.losses or {})
    splits = with_validation(recipe.data.splits(graph), recipe.train)
    graph = weigh_classes(graph, labels, splits[TRAIN])
    refuse_unlabelled(graph, splits[TRAIN])
    with _engine(graph, recipe, splits, directory, watch=watch) as engine:
        engine.on_rank_zero(partial(refuse_unreadable, splits))
        inherited = first(engine, splits)
        fingerprints = engine.on_rank_zero(partial(as_json, recipe.data, splits))
        if engine.processes.is_rank_zero:
            start = {} if inherited is None else {directory.start.name: inherited.record()}
            kept = {**recipe.data.keeps(graph), directory.data.name: fingerprints, **start}
            spec = program.standalone
            if leaks := [*find_next_token_leaks(program.ir, recipe.data)]:
                log.warning(render_all(leaks))
            directory.create(spec.text, spec.imports, graph, recipe.to_yaml(), kept, engine.progress.step)
        if inherited is not None:
            engine.say(str(inherited))
            engine.save()
        if engine.processes.is_rank_zero:
            directory.mark(STARTED, **{CHANGED: recipe.list_changed()})
        yield engine


def resume_run(
    path: str | Path, data: DataSet | None = None, watch: Watch = NOBODY, overrides: Mapping[str, Any] | None = None
) -> AbstractContextManager[Engine]:
    """Resume a run at its newest checkpoint; `data` are those that it began with, where they were given in Python.
    `overrides` say how processes divide the work, by the keys `DIVISION` of a recipe. Raises `ModgraphError`."""
    run = load_run(path).with_data(data)
    recipe, splits = run.recipe, run.splits()
    if overrides:
        recipe = read_recipe(run.directory.recipe, overrides)
        refuse_unfit(run.graph, recipe)

    def check() -> None:
        check_logs(run.directory)
        way_out = f"start a new run from these weights: -s start.run={path}"
        if not run.directory.has_kept_steps():
            way_out = f"begin the run anew, since it has kept no step: modgraph train SPEC --out {path}"
        way_out = f"restore them, or {way_out}"
        run.refuse_to_resume(splits, way_out)

    return _engine(run.began_with, recipe, splits, run.directory, check, True, watch)


@contextmanager
def _engine(
    graph: Graph,
    recipe: Recipe,
    splits: dict[str, Arrays],
    directory: RunDirectory,
    check: Callable[[], None] = lambda: None,
    resume: bool = False,
    watch: Watch = NOBODY,
) -> Iterator[Engine]:
    """Yield an engine with processes joined, `check` done by one of them, threads set, and the folder locked."""
    with ExitStack() as stack:
        stack.enter_context(threads(recipe.train.threads))
        stack.enter_context(report_lost_peers(directory.path))
        train = recipe.train
        refuse_experts(train.experts, resume)
        processes = Processes(train.device, train.precision, train.strategy, train.experts)
        stack.callback(processes.close)
        if recipe.train.compile:
            refuse_without_compiler(processes.device)
        processes.on_rank_zero(check)
        counts = ", ".join(f"{len(arrays):,} of {name}" for name, arrays in splits.items())
        log.debug(f"examples: {counts}; on {processes.device}, in {recipe.train.precision}")
        check_monitored(graph, recipe.train, splits)
        if recipe.train.bucket is not None:
            splits[TRAIN].lengths()
        if processes.is_rank_zero:
            stack.enter_context(directory.lock_folder())
        stack.enter_context(report_memory(recipe.train.batch))
        yield Engine(
            graph, recipe.train, build_curriculum(graph, recipe.train, splits), directory, processes, resume, watch
        )


def build_curriculum(graph: Graph, train: Train, splits: Mapping[str, Arrays]) -> Curriculum:
    """Return the phases of a training of a graph, by its algorithm. Raises `ModgraphError`."""
    return train.algorithm.curriculum(Setup(graph, splits, train.seed, train.batch, train.epochs))


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Set the number of processor threads of torch. The recipe says how many, not the machine: sums would differ in
    their last bits, and threads that wait for each other on a busy processor are far slower than a single one."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def finish(engine: Engine, data: DataSet | None = None) -> dict[str, Any]:
    """Train to the end, test on every other split (of `data`, where these were given in Python), and record metrics by
    `split.metric`."""
    engine.run()
    processes = engine.processes
    processes.gather(None)  # wait for all processes
    run = load_run(engine.directory.path).with_data(data)
    model = run.model(processes.device, group=processes.pool_group)
    done = engine.progress
    metrics: dict[str, Any] = {"epochs": done.epoch, "steps": done.step, **engine.curriculum.results(engine)}
    if engine.train.best is not None:
        best = engine.train.best if isinstance(engine.train.best, str) else "best"
        metrics |= {"best_step": done.best_step, best: done.best}
    tests, confusion = unseen(run.splits()), dict[str, Confusion]()
    try:
        processes.on_rank_zero(partial(run.refuse_changed, tests))
        for split, arrays in tests.items():
            confusion[split] = Confusion()
            found = engine.measure(model, arrays, confusion[split])
            metrics |= {f"{split}.{name}": value for name, value in found.items()}
    except ModgraphError:
        if processes.is_rank_zero:
            run.keep_unreadable(tests)
        raise
    if processes.is_rank_zero:
        keep_confusion(engine.directory, _name_classes(confusion, run.description().get("classes", {})))
        facts = {**engine.curriculum.record(engine), LOGS: seal_logs(engine.directory)}
        engine.directory.mark(FINISHED, metrics=finite(metrics), **facts)
    return metrics


def _name_classes(found: Mapping[str, Confusion], classes: Mapping[str, Sequence[str]]) -> Matrices:
    """Return the confusion matrices of each split and target with the names of their classes."""
    return {
        split: {
            target: Matrix(name_rows(len(matrix), classes.get(target, ())), matrix.tolist())
            for target, matrix in confusion.matrices.items()
        }
        for split, confusion in found.items()
    }


def print_metrics(engine: Engine, metrics: Mapping[str, Any]) -> None:
    """Log the run's path, and print the metrics as the last line of stdout."""
    if engine.processes.is_rank_zero:
        log.info(f"the run is in {engine.directory.path}")
        print(json_text(metrics))


@contextmanager
def report_memory(batch: int) -> Iterator[None]:
    """Raises `ModgraphError` where a training with a batch of this size runs out of memory."""
    try:
        yield
    except (MemoryError, OSError, RuntimeError) as error:  # including torch's own
        asked = BYTES.search(str(error)) if isinstance(error, RuntimeError) else None
        of_memory = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not (of_memory or asked or getattr(error, "errno", None) == errno.ENOMEM):
            raise
        reason = f"it needs {format_bytes(int(asked[1]))} at once" if asked and not of_memory else explain_error(error)
        raise ModgraphError([TooLargeForMemory(reason=reason, batch=max(1, batch // 2))]) from error


@contextmanager
def report_lost_peers(run: Path) -> Iterator[None]:
    """Raises `ModgraphError` where one of several processes cannot reach another, which has ended or was killed."""
    try:
        yield
    except RuntimeError as error:
        of_peer = isinstance(error, dist.DistError) or any(words in str(error).lower() for words in OF_PEERS)
        if int(os.environ.get("WORLD_SIZE", 1)) == 1 or not of_peer:
            raise
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        reason = reason.rpartition("] ")[2] if reason.startswith("[") else reason  # without a location in torch's code
        short = reason.partition(". ")[0].rstrip(".").strip()[:200]
        raise ModgraphError([ProcessLost(reason=short, path=str(run))]) from error
