"""A map from the tensors of a file made elsewhere to a spec's weights, read from YAML and held against the graph.

    weights:                                   # names there: names here
      blocks.*.mlp.*.*: [blocks.*.mlp.*.*, blocks.*.expert.#.ffn.*.*]
    random: [head.*]                           # of ours, what may start afresh
    unused: [dist_token]                       # of theirs, what nothing here needs

Between dots, `*` is any one part of a name, taken over in order; `#`, here alone, is every number. Needs no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from modgraph.diagnostics import ModgraphError, Note, Report, Span, did_you_mean, listed
from modgraph.ir import Graph, weights_of
from modgraph.recipes.errors import BadValue, BadYaml, MissingKey, UnknownKey
from modgraph.recipes.yaml_tree import Branch, Leaf, read_tree
from modgraph.syntax import read
from modgraph.training.start import errors

ANY, EVERY = "*", "#"
SECTIONS = ("weights", "random", "unused")
COMPARED = 5_000_000  # patterns times weights
TOLD = 100  # rules of one mistake


@dataclass(frozen=True)
class WeightMap:
    """Where each weight comes from: `sources` has the file's tensor for each weight that a rule gives; those in
    `random` start afresh where the file has none that fits; tensors that match `unused` may be left behind."""

    sources: Mapping[str, str]
    random: frozenset[str]
    unused: tuple[str, ...]

    def is_unused(self, tensor: str) -> bool:
        return _matches(self.unused, tensor)


@dataclass(frozen=True)
class _Rule:
    """One target of one source, and where it stands."""

    source: str
    target: str
    span: Span | None


def read_map(path: str, graph: Graph) -> WeightMap:
    """The map of a file, for a model. Raises `ModgraphError` with every mistake."""
    report = Report()
    source = read(path, report)
    if source is None:
        raise ModgraphError(report.diagnostics)
    tree = read_tree(source)
    for key in tree.items:
        if key not in SECTIONS:
            suggestion = did_you_mean(key, SECTIONS)
            report.add(UnknownKey(span=tree.keys[key], section="a map", key=key, suggestion=suggestion))
    weights = [weight.name for weight in weights_of(graph)]
    rules = list(_rules(tree, report))
    random = _patterns(tree, "random", report)
    _refuse_too_many([*(rule.target for rule in rules), *random], weights, tree)
    sources = _sources(rules, weights, report)
    free = frozenset(name for name in weights if _matches(random, name))
    forgotten = [name for name in weights if name not in sources and name not in free]
    if forgotten and not report.errors:
        report.add(errors.NotMapped(span=tree.keys.get("weights", tree.span), weights=listed(forgotten)))
    unused = _patterns(tree, "unused", report)
    if report.errors:
        raise ModgraphError(report.in_order())
    return WeightMap(sources, free, unused)


def _matches(patterns: Iterable[str], name: str) -> bool:
    """Whether one of the patterns means this name, among others."""
    return any(captured(each, name) is not None if _is_pattern(each) else each == name for each in patterns)


def _is_pattern(name: str) -> bool:
    return ANY in name or EVERY in name


def _refuse_too_many(names: list[str], weights: list[str], tree: Branch) -> None:
    """Raises `ModgraphError` where comparing all patterns with all weights would take long."""
    patterns = sum(map(_is_pattern, names))
    if patterns * len(weights) > COMPARED:
        reason = f"its {patterns:,} patterns are too many for {len(weights):,} weights"
        raise ModgraphError([BadYaml(span=tree.span, reason=reason)])


def captured(pattern: str, name: str) -> tuple[str, ...] | None:
    """What each `*` of a pattern stands for in a name, or None if the name is none of its names."""
    parts, found = pattern.split("."), name.split(".")
    if len(parts) != len(found):
        return None
    pairs = list(zip(parts, found, strict=True))
    if not all(part in (ANY, each) or (part == EVERY and each.isdigit()) for part, each in pairs):
        return None
    return tuple(each for part, each in pairs if part == ANY)


def _filled(pattern: str, values: Iterable[str]) -> str:
    """The name that a pattern means for these values of its `*`."""
    values = iter(values)
    return ".".join(next(values) if part == ANY else part for part in pattern.split("."))


def _rules(tree: Branch, report: Report) -> Iterator[_Rule]:
    """The rules whose patterns mean something."""
    section = tree.items.get("weights")
    if not isinstance(section, Branch):
        meaning = "names of tensors, each with the weights here that it becomes"
        report.add(MissingKey(span=tree.span, section="a map", key="weights", meaning=meaning))
        return
    for source, item in section.items.items():
        for target in _words(item, source, report):
            problem = _problem(source, every=False) or _problem(target)
            if problem is None and source.split(".").count(ANY) != target.split(".").count(ANY):
                problem = "both sides have the same number of *; a # stands for every number"
            if problem is None:
                yield _Rule(source, target, item.span)
            else:
                report.add(errors.BadWeightRule(span=item.span, source=source, target=target, problem=problem))


def _patterns(tree: Branch, key: str, report: Report) -> tuple[str, ...]:
    """The patterns that a section lists."""
    item = tree.items.get(key)
    return () if item is None else _words(item, key, report)


def _words(item: Leaf | Branch, key: str, report: Report) -> tuple[str, ...]:
    """The names of one value, a word or a list of words."""
    found = item.value if isinstance(item, Leaf) else None
    words = found if isinstance(found, tuple) else (found,)
    if all(isinstance(word, str) for word in words):
        return words
    report.add(BadValue(span=item.span, key=key, problem="must be a name or a list", meaning="names of tensors"))
    return ()


def _problem(pattern: str, every: bool = True) -> str | None:
    """What is wrong with a pattern, or None."""
    if any(sign in part and sign != part for part in pattern.split(".") for sign in (ANY, EVERY)):
        return f"{ANY} and {EVERY} stand for a whole part between dots"
    return f"{EVERY} makes no sense on the side of the file" if EVERY in pattern and not every else None


def _sources(rules: list[_Rule], weights: list[str], report: Report) -> dict[str, str]:
    """The tensor of each weight. A rule is a mistake if none of its targets is a weight."""
    found: dict[str, tuple[str, _Rule]] = {}
    used: set[str] = set()
    known = set(weights)
    for rule in rules:
        for name in weights if _is_pattern(rule.target) else known & {rule.target}:
            values = captured(rule.target, name)
            if values is None:
                continue
            used.add(rule.source)
            _, other = found.setdefault(name, (_filled(rule.source, values), rule))
            if other is not rule:
                notes = (Note(text=f'the other is that of "{other.source}"', span=other.span),)
                report.add(errors.MappedTwice(span=rule.span, weight=name, notes=notes))
    for rule in [rule for rule in rules if rule.source not in used][:TOLD]:
        suggestion = _suggestion(rule.target, weights)
        report.add(errors.NoSuchWeight(span=rule.span, pattern=rule.target, suggestion=suggestion))
    return {name: source for name, (source, _) in found.items()}


def _suggestion(target: str, weights: list[str]) -> str:
    """What a target may have meant, with its own `*` and `#` where it has them."""
    parts = target.split(".")
    alike = [name.split(".") for name in weights if name.count(".") == target.count(".")]
    known = {
        ".".join(part if part in (ANY, EVERY) else each for part, each in zip(parts, name, strict=True))
        for name in alike
    }
    return did_you_mean(target, known or weights, "its weights are: {known}")
