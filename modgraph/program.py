"""A spec, read: the Python face of the front end, and the door to the stages after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source, did_you_mean
from modgraph.elaboration import Standalone, read_model
from modgraph.files import exists
from modgraph.inspect.cost import Cost, Memory, TrainingStep, check_lengths, compute_cost
from modgraph.ir import Graph, heading
from modgraph.recipes.errors import UnknownChoice
from modgraph.recipes.optimizers import Optimizer
from modgraph.syntax import ast, read
from modgraph.syntax.errors import UnexpectedText

if TYPE_CHECKING:
    from modgraph.backends.torch import Model
    from modgraph.differences import HasArchitecture
    from modgraph.drawings import Drawing
    from modgraph.inspect.diff import Comparison
    from modgraph.store.architecture import Architecture


@dataclass(frozen=True)
class Program:
    """An architecture that was read from a spec.

    `ir` is its graph, which prints as `modgraph show` prints it; `source` the text, `warnings` what `check` warns of,
    `moved` new names by those of an earlier version, and `standalone` the text with those of its imports.
    """

    ir: Graph
    source: Source | None = None
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False)
    moved: Mapping[str, str] = field(default_factory=dict, compare=False)
    standalone: Standalone | None = field(default=None, compare=False, repr=False)

    def cost(self, **lengths: int) -> Cost:
        """Parameters and multiply-accumulates per example; axes of any length have the given ones, or 1.

        Raises `ModgraphError` for an axis that the model does not have, or a length that does not fit.
        """
        check_lengths(self.ir, lengths)
        return compute_cost(self.ir, lengths)

    def reads(self) -> dict[str, Any]:
        """What each output reads: which tokens of each input, such as "the past", and other examples, in training and
        in inference; and which ops read padding."""
        from modgraph.inspect.reads import find_reads

        return find_reads(self.ir)

    def __repr__(self) -> str:
        source = "" if self.source is None else f" from {self.source.name}"
        return f"<Program {heading(self.ir)}{source}>"

    def _repr_html_(self) -> str:
        """The graph as a picture, and what it costs, as a notebook shows it."""
        from modgraph.inspect.cost_text import count_lines
        from modgraph.inspect.notebook import render, render_picture, render_text
        from modgraph.inspect.scene import scene_of

        counts = "\n".join(line for line in count_lines(self.cost(), self.ir) if "--all" not in line)  # of the command
        return render(heading(self.ir), render_picture(scene_of(self.ir)), render_text(counts))

    def architecture(self) -> Architecture:
        """The program as readers of files take it, the spec that it was read from."""
        from modgraph.store.architecture import Architecture, Kind

        path = Path("<string>" if self.source is None else self.source.name)
        return Architecture(path, Kind.SPEC, self.ir, self.source, warnings=self.warnings, moved=self.moved)

    def diff(self, other: HasArchitecture | str | Path, **lengths: int) -> Comparison:
        """What `other` (a program, a run, or a path of a spec, run, checkpoint, graph or bundle) differs in: nodes,
        costs, and what becomes of weights.

        Axes of any length have the given ones, or 1. Raises `ModgraphError` for what cannot be read, and `TypeError`
        for anything else.
        """
        from modgraph.differences import differences, to_architecture

        return differences(self.architecture(), to_architecture(other), lengths)

    def visualize(
        self,
        path: str | Path | None = None,
        force: bool = False,
        *,
        depth: int | None = None,
        direction: str = "down",
        without: str | Sequence[str] = (),
        lengths: bool = False,
    ) -> Drawing:
        """The graph as a drawing, which a notebook shows; with a path written there: a page to explore (`.html`), a
        picture (`.svg`), graphviz (`.dot`), Mermaid (`.mmd`).

        The options are those of `modgraph.visualize`. Raises `ModgraphError` for another suffix or option, and for a
        file that modgraph did not write, unless `force` is true.
        """
        from modgraph.drawings import draw

        return draw(self, path, force, depth=depth, direction=direction, without=without, lengths=lengths)

    def memory(self, batch: int = 1, optimizer: str = "adam", precision: str = "float32", **lengths: int) -> Memory:
        """Bytes of a training step, axes of any length as `cost` takes them: measured on tensors without numbers.

        Raises `ModgraphError` for an axis that the model does not have, a length that does not fit, or an op that needs
        numbers, an unknown optimizer or precision, and `TypeError` for a batch that is no number.
        """
        from modgraph.backends.torch.step_memory import BYTES, memory_of

        check_lengths(self.ir, lengths)
        if type(batch) is not int or batch < 1:
            raise TypeError(f"batch is a number of examples from 1, not {batch!r}")
        kind: Any = Optimizer.registry.find(optimizer)
        for what, name, known in (("optimizer", optimizer, Optimizer.registry), ("precision", precision, BYTES)):
            if name not in known:
                suggestion = did_you_mean(str(name), known, "they are: {known}")
                raise ModgraphError([UnknownChoice(what=what, name=str(name), suggestion=suggestion)])
        kept, made = kind().numbers_per_weight
        return memory_of(self.ir, TrainingStep(batch, kept, made, precision), lengths)

    def build(self, seed: int = 0, lowering: str | None = None, pools: str = "auto") -> Model:
        """A torch module with fresh weights, a function of the seed and of each weight's name.

        `lowering` asks for one (`masked`, `message_passing`) of all routes that have it; the others, and by default
        all, have their best. `pools` says which pools hold one tensor for each weight of all modules: `stored` all,
        `modules` none, `auto` those where it pays; names of weights and results are the same. Raises `ModgraphError`
        where the weights do not fit in memory or a pool cannot be stored, and `ValueError` for a lowering that no route
        has.
        """
        from modgraph.backends.torch import build
        from modgraph.passes.store import WAYS, Store

        if pools not in WAYS:
            raise ModgraphError(
                [UnknownChoice(what="pools", name=str(pools), suggestion=did_you_mean(str(pools), WAYS))]
            )
        return build(self.ir, seed=seed, lowering=lowering, store=Store(pools))

    def pytorch_source(self, lowering: str | None = None) -> str:
        """The model as one file of PyTorch that needs torch alone and gives the same outputs and gradients, with the
        same names of weights. Raises `ModgraphError` where a layer cannot be copied."""
        from modgraph.backends.report import random_batch
        from modgraph.backends.torch.source import verify_source

        model = self.build(lowering=lowering)
        return verify_source(model, random_batch(model))


def load(path: str | Path, /, **parameters: Any) -> Program:
    """Read a spec. Keywords set its parameters, `load("specs/smn.mod", modules=8)`.

    Raises `ModgraphError`, which shows every mistake with its place, and `TypeError` for anything but a path.
    """
    if not isinstance(path, str | Path):
        raise TypeError(f"load takes a path, not {type(path).__name__}: modgraph.loads(TEXT) reads a string")
    if isinstance(path, str) and "{" in path and not exists(path):
        raise TypeError("load takes a path, not the text of a spec: modgraph.loads(TEXT) reads a string")
    report = Report()
    source = read(path, report)
    return read_program(source, parameters, report)


def loads(text: str, /, name: str = "<string>", **parameters: Any) -> Program:
    """Read a spec from a string. `name` stands in messages, and imports are searched next to it.

    Raises `ModgraphError`, which shows every mistake with its place, and `TypeError` for anything but a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"loads takes the text of a spec, not {type(text).__name__}: modgraph.load(PATH) reads a file")
    if text.endswith(".mod") and "\n" not in text:
        way_out = "modgraph.load(PATH) reads a file"
        raise ModgraphError([UnexpectedText(expected="the text of a spec", found="a path", way_out=way_out)])
    return read_program(Source(name, text), parameters, Report())


def read_program(
    source: Source | None, parameters: Mapping[str, Any], report: Report, file: ast.File | None = None
) -> Program:
    """Read the program of a source, whose tree is `file` where it is parsed already. Raises `ModgraphError`."""
    found = read_model(source, parameters, report, file)
    return Program(found.graph, source, tuple(report.warnings), found.moved, found.standalone)
