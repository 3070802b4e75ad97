"""A map from the tensors of a file made elsewhere to a spec's weights, read from YAML and held against the graph.

    weights:                                   # names there: names here
      blocks.*.mlp.*.*: [blocks.*.mlp.*.*, blocks.*.expert.#.ffn.*.*]
      blocks.*.experts: {to: blocks.*.expert.#.linear.weight, axes: "# in out -> out in"}
    random: [head.*]                           # of ours, what may start afresh
    unused: [dist_token]                       # of theirs, what nothing here needs

Between dots, `*` is any one part of a name, taken over in order; `#`, here alone, is every number. Needs no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from modgraph.diagnostics import ModgraphError, Note, Report, did_you_mean, listed
from modgraph.ir import Graph, weights_of
from modgraph.recipes.errors import BadYaml, UnknownKey
from modgraph.recipes.yaml_tree import read_tree
from modgraph.syntax import read
from modgraph.training.start import errors
from modgraph.training.start.weight_rule import (
    ANY,
    EVERY,
    Origin,
    Rule,
    captured,
    is_pattern,
    matches,
    read_rules,
    read_words,
)

SECTIONS = ("weights", "random", "unused")
COMPARED = 5_000_000  # patterns times weights
TOLD = 100  # rules of one mistake


@dataclass(frozen=True)
class WeightMap:
    """Where each weight comes from: `origins` has each that a rule gives; those in `random` start afresh where the
    file has nothing that fits; tensors that match `unused` may be left behind."""

    origins: Mapping[str, Origin]
    random: frozenset[str]
    unused: tuple[str, ...]


def read_map(path: str, graph: Graph) -> WeightMap:
    """The map of a file, for a model. Raises `ModgraphError` with every mistake."""
    report = Report()
    source = read(path, report)
    if source is None:
        raise ModgraphError(report.diagnostics)
    tree = read_tree(source, report)
    for key in tree.items:
        if key not in SECTIONS:
            suggestion = did_you_mean(key, SECTIONS)
            report.add(UnknownKey(span=tree.keys[key], section="a map", key=key, suggestion=suggestion))
    shapes = {weight.name: weight.shape for weight in weights_of(graph)}
    rules = list(read_rules(tree, report))
    random, unused = (
        read_words(tree.items[key], key, report) if key in tree.items else () for key in ("random", "unused")
    )
    patterns = sum(map(is_pattern, [*(rule.target for rule in rules), *random]))
    if patterns * len(shapes) > COMPARED:
        reason = f"its {patterns:,} patterns are too many for {len(shapes):,} weights"
        raise ModgraphError([BadYaml(span=tree.span, reason=reason)])
    origins = _origins(rules, shapes, report)
    free = frozenset(name for name in shapes if matches(random, name))
    forgotten = [name for name in shapes if name not in origins and name not in free]
    if forgotten and not report.errors:
        report.add(errors.NotMapped(span=tree.keys.get("weights", tree.span), weights=listed(forgotten)))
    if report.errors:
        raise ModgraphError(report.in_order())
    return WeightMap(origins, free, unused)


def _origins(rules: list[Rule], shapes: Mapping[str, tuple[int, ...]], report: Report) -> dict[str, Origin]:
    """Where each weight comes from. A rule is a mistake if none of its targets is a weight."""
    found: dict[str, tuple[Origin, Rule]] = {}
    used: set[str] = set()
    for rule in rules:
        among = shapes if is_pattern(rule.target) else shapes.keys() & {rule.target}
        names = {name: values for name in among if (values := captured(rule.target, name)) is not None}
        used |= {rule.source} if names else set()
        axes = None if rule.arrangement is None else len(rule.arrangement.here)
        wrong = next((name for name in names if axes not in (None, len(shapes[name]))), None)
        if wrong is not None:
            rank, arrangement = len(shapes[wrong]), str(rule.arrangement)
            report.add(errors.AxesDoNotFit(span=rule.span, weight=wrong, rank=rank, axes=arrangement, found=axes))
        for name, values in names.items():
            _, other = found.setdefault(name, (rule.origin(name, values), rule))
            if other is not rule:
                notes = (Note(text=f'the other is that of "{other.source}"', span=other.span),)
                report.add(errors.MappedTwice(span=rule.span, weight=name, notes=notes))
    for rule in [rule for rule in rules if rule.source not in used][:TOLD]:
        suggestion = _suggestion(rule.target, list(shapes))
        report.add(errors.NoSuchWeight(span=rule.span, pattern=rule.target, suggestion=suggestion))
    return {name: origin for name, (origin, _) in found.items()}


def _suggestion(target: str, weights: list[str]) -> str:
    """What a target may have meant, with its own `*` and `#` where it has them."""
    parts = target.split(".")
    alike = [name.split(".") for name in weights if name.count(".") == target.count(".")]
    known = {
        ".".join(part if part in (ANY, EVERY) else each for part, each in zip(parts, name, strict=True))
        for name in alike
    }
    return did_you_mean(target, known or weights, "its weights are: {known}")
