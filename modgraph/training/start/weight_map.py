"""A map from the tensors of a file made elsewhere to a spec's weights, read from YAML and held against the graph.

    weights:                                   # names there: names here
      blocks.*.mlp.*.*: [blocks.*.mlp.*.*, blocks.*.expert.#.ffn.*.*]
      blocks.*.experts: {to: blocks.*.expert.#.linear.weight, axes: "# in out -> out in"}
      blocks.*.gate_up: {to: [blocks.*.gate.weight, blocks.*.up.weight], axes: "(half out) in -> out in"}
      blocks.*.query: {to: blocks.*.query.weight, optional: true}       # of ours, what a model may lack
    random: [head.*]                           # of ours, what may start afresh
    unused: [dist_token]                       # of theirs, what nothing here needs

Sections `config` and `requires` say what config.json has to do with the spec's parameters (`training/published.py`).
Between dots, `*` is any one part of a name, taken over in order; `#`, here alone, is every number. Needs no torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from modgraph.declare import setting
from modgraph.diagnostics import Diagnostic, ModgraphError, Note, Report, Span, did_you_mean, list_names
from modgraph.ir import Graph, weights_of
from modgraph.recipes.errors import BadYaml, MissingKey, UnknownKey
from modgraph.recipes.schema import Section, read_section, refuse
from modgraph.recipes.yaml_tree import Branch, Leaf, read_tree
from modgraph.syntax import read
from modgraph.training.published import read_keys
from modgraph.training.start import errors
from modgraph.training.start.arrangement import STACK, Arrangement, Origin, Part

SECTIONS = ("weights", "random", "unused", "config", "requires")
ANY, EVERY = "*", "#"
COMPARED = 5_000_000  # most patterns times weights
MOST_REPORTED = 100  # rules of the same mistake


@dataclass(frozen=True)
class WeightMap:
    """The origin of each weight: `origins` has those that a rule gives. Weights in `random` begin afresh where the file
    has nothing that fits. Tensors that match `unused` may be left behind."""

    origins: Mapping[str, Origin]
    random: frozenset[str]
    unused: tuple[str, ...]


def read_map(path: str, graph: Graph) -> WeightMap:
    """Read a map for a model. Raises `ModgraphError` with every mistake."""
    report = Report()
    source = read(path, report)
    if source is None:
        raise ModgraphError(report.diagnostics)
    tree = read_tree(source, report)
    for key in tree.items:
        if key not in SECTIONS:
            suggestion = did_you_mean(key, SECTIONS)
            report.add(UnknownKey(span=tree.keys[key], section="a map", key=key, suggestion=suggestion))
    read_keys(tree, graph.parameters, report)
    shapes = {weight.name: weight.shape for weight in weights_of(graph)}
    rules = list(read_rules(tree, report))
    random, unused = (
        read_words(tree.items[key], key, report) if key in tree.items else () for key in ("random", "unused")
    )
    patterns = sum(map(is_pattern, [*(rule.target for rule in rules), *random]))
    if patterns * len(shapes) > COMPARED:
        reason = f"{patterns:,} patterns are too many for {len(shapes):,} weights"
        raise ModgraphError([BadYaml(span=tree.span, reason=reason)])
    origins = _origins(rules, shapes, report)
    free = frozenset(name for name in shapes if matches(random, name))
    forgotten = [name for name in shapes if name not in origins and name not in free]
    if forgotten and not report.errors:
        report.add(errors.NotMapped(span=tree.keys.get("weights", tree.span), weights=list_names(forgotten)))
    if report.errors:
        raise ModgraphError(report.list_diagnostics())
    return WeightMap(origins, free, unused)


def _origins(rules: list[Rule], shapes: Mapping[str, tuple[int, ...]], report: Report) -> dict[str, Origin]:
    """Return the origin of each weight. A rule, unless optional, needs a target that is a weight."""
    found: dict[str, tuple[Origin, Rule]] = {}
    used = {rule.source for rule in rules if rule.optional}
    for rule in rules:
        among = shapes if is_pattern(rule.target) else shapes.keys() & {rule.target}
        names = {name: values for name in among if (values := match_pattern(rule.target, name)) is not None}
        used |= {rule.source} if names else set()
        if (misfit := _find_misfit(rule, names, shapes)) is not None:
            report.add(misfit)
            continue
        for name, values in names.items():
            part = rule.find_part(name, shapes)
            _, other = found.setdefault(name, (rule.origin(name, values, part), rule))
            if other is not rule:
                notes = (Note(text=f'the other is that of "{other.source}"', span=other.span),)
                report.add(errors.MappedTwice(span=rule.span, weight=name, notes=notes))
    for rule in [rule for rule in rules if rule.source not in used][:MOST_REPORTED]:
        parts = rule.target.split(".")
        candidates = [name.split(".") for name in shapes if name.count(".") == len(parts) - 1]
        known = {  # with its own * and #
            ".".join(part if part in (ANY, EVERY) else each for part, each in zip(parts, name, strict=True))
            for name in candidates
        }
        suggestion = did_you_mean(rule.target, known or shapes, "its weights are: {known}")
        report.add(errors.NoSuchWeight(span=rule.span, pattern=rule.target, suggestion=suggestion))
    return {name: origin for name, (origin, _) in found.items()}


def _find_misfit(rule: Rule, names: Iterable[str], shapes: Mapping[str, tuple[int, ...]]) -> Diagnostic | None:
    """Return the first mistake in the axes of a rule for the weights that it gives."""
    axes = rule.arrangement
    for name in names if axes is not None else ():
        assert axes is not None
        shared = rule.list_parts(name) or [name]
        lost = next((each for each in shared if each not in shapes), None)
        if lost is not None:
            return errors.NoSuchWeight(span=rule.span, pattern=lost, suggestion=did_you_mean(lost, shapes))
        rank = len(axes.order)
        other = next((each for each in shared if len(shapes[each]) != rank), None)
        if other is not None:
            wanted = len(shapes[other])
            return errors.AxesDoNotFit(span=rule.span, weight=other, rank=wanted, axes=axes.text, found=rank)
        sizes = [shapes[each][axes.divided[1]] for each in shared if axes.divided is not None]
        if axes.interleaved and len({*sizes}) > 1:
            problem = f"{list_names(shared)} are interleaved, but have {', '.join(map(str, sizes))} places"
            return errors.BadArrangement(span=rule.span, axes=axes.text, problem=problem)
    return None


def is_pattern(name: str) -> bool:
    return ANY in name or EVERY in name


def match_pattern(pattern: str, name: str, sign: str = ANY) -> tuple[str, ...] | None:
    """Return the part of a name for each `*` of a pattern, or for each other sign; None if the name does not match."""
    found = _compile_pattern(pattern, sign).fullmatch(name)
    return None if found is None else found.groups()


@lru_cache(maxsize=4096)
def _compile_pattern(pattern: str, sign: str) -> re.Pattern[str]:
    """Compile a pattern, with a group for each part that is `sign`."""
    known = {ANY: "[^.]*", EVERY: r"\d+"}
    parts = (known.get(part, re.escape(part)) for part in pattern.split("."))
    grouped = (f"({each})" if part == sign else each for part, each in zip(pattern.split("."), parts, strict=True))
    return re.compile(r"\.".join(grouped))


def matches(patterns: Iterable[str], name: str) -> bool:
    """Whether one of the patterns matches this name."""
    return any(match_pattern(each, name) is not None if is_pattern(each) else each == name for each in patterns)


def fill_pattern(pattern: str, values: Iterable[str], numbers: Iterable[str] = ()) -> str:
    """Return the name that has these parts for the `*` and `#` of a pattern, in order."""
    left = {ANY: iter(values), EVERY: iter(numbers)}
    return ".".join(next(left[part]) if part in left else part for part in pattern.split("."))


@dataclass(frozen=True)
class Rule:
    """One of the targets of one source, and the span of both."""

    source: str
    targets: tuple[str, ...]
    at: int
    arrangement: Arrangement | None
    optional: bool
    span: Span | None

    @property
    def target(self) -> str:
        return self.targets[self.at]

    @property
    def is_stacked(self) -> bool:
        """Whether each weight takes a slice of the tensor."""
        return self.arrangement is not None and self.arrangement.stack is not None

    @property
    def is_divided(self) -> bool:
        """Whether each target takes a part of the tensor."""
        return self.arrangement is not None and self.arrangement.divided is not None

    def problem(self) -> str | None:
        """Return the problem with the rule, or None."""
        source, target = self.source.split("."), self.target.split(".")
        for parts in (source, target):
            if any(sign in part and sign != part for part in parts for sign in (ANY, EVERY)):
                return f"{ANY} and {EVERY} match a whole part between dots"
            if parts is source and EVERY in parts:
                return f"{EVERY} must stand on the side of the model"
        if source.count(ANY) != target.count(ANY):
            return "both sides need the same number of *; a # matches every number"
        if self.is_stacked and target.count(EVERY) != 1:
            return f"its axes have a {STACK}, so the weight's name has one {EVERY}, for the number of the slice"
        if self.is_divided and (len(self.targets) < 2 or len({each.count(EVERY) for each in self.targets}) > 1):
            return "its axes have parts, so to lists a weight for each, all with as many #"
        return None

    def list_parts(self, weight: str) -> list[str]:
        """Return the weights that share a tensor with one, itself included; none where it takes the whole."""
        values, numbers = (match_pattern(self.target, weight, sign) or () for sign in (ANY, EVERY))
        return [fill_pattern(each, values, numbers) for each in self.targets] if self.is_divided else []

    def find_part(self, weight: str, shapes: Mapping[str, tuple[int, ...]]) -> Part | None:
        """Return the part of the tensor that a weight takes, by the shapes of all that share it; None for the whole."""
        if self.arrangement is None or self.arrangement.divided is None:
            return None
        _, axis = self.arrangement.divided
        sizes = [shapes[name][axis] for name in self.list_parts(weight)]
        if self.arrangement.interleaved:
            return Part(self.at, sizes[0], len(sizes), sum(sizes))
        return Part(sum(sizes[: self.at]), sizes[self.at], 1, sum(sizes))

    def origin(self, weight: str, values: Iterable[str], part: Part | None) -> Origin:
        """Return the origin of a weight whose name has these values of `*`."""
        numbers = match_pattern(self.target, weight, EVERY) or ()
        slice_ = int(numbers[0]) if self.is_stacked else None
        return Origin(fill_pattern(self.source, values), self.arrangement, slice_, part)


class _Arranged(Section):
    """The target of a tensor with another order of axes."""

    to: str | tuple[str, ...] = setting(doc="the weights in the model: a name or a list")
    axes: str | None = setting(
        None,
        doc='axes in the file and in the model, such as "# in out -> out in"; # is unstacked, and of (half out) each '
        "weight of to takes a part",
    )
    optional: bool = setting(False, doc="whether a model may lack the weights")


def read_rules(tree: Branch, report: Report) -> Iterator[Rule]:
    """Yield the rules with valid patterns."""
    section = tree.items.get("weights")
    if not isinstance(section, Branch):
        meaning = "names of tensors, each with its weights of the model"
        report.add(MissingKey(span=tree.span, section="a map", key="weights", meaning=meaning))
        return
    for source, item in section.items.items():
        targets: tuple[str, ...] = ()
        arrangement, optional = None, False
        if isinstance(item, Leaf):
            targets = read_words(item, source, report)
        elif (found := read_section(_Arranged, item, source, report)) is not None:
            try:
                arrangement = None if found.axes is None else Arrangement.parse(found.axes)
                targets = (found.to,) if isinstance(found.to, str) else found.to
                optional = found.optional
            except ValueError as error:
                span, problem = item.items["axes"].span, str(error)
                report.add(errors.BadArrangement(span=span, axes=found.axes, problem=problem))
        for at, target in enumerate(targets):
            rule = Rule(source, targets, at, arrangement, optional, item.span)
            wrong = rule.problem()
            if wrong is None:
                yield rule
            else:
                report.add(errors.BadWeightRule(span=item.span, source=source, target=target, problem=wrong))


def read_words(item: Leaf | Branch, key: str, report: Report) -> tuple[str, ...]:
    """Return the names of one value, a word or a list of words."""
    found = item.value if isinstance(item, Leaf) else None
    words = found if isinstance(found, tuple) else (found,)
    if all(isinstance(word, str) for word in words):
        return words
    refuse(report, item.span, key, "must be a name or a list", "names of tensors")
    return ()
