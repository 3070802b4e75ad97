"""A YAML text as a tree whose every key and value knows its place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from modgraph.diagnostics import ModgraphError, Source, Span
from modgraph.recipes.errors import BadYaml, DuplicateKey

LETTERS = 2**18  # of a recipe or map
NODES = 100_000  # keys and values of a recipe, those that aliases repeat included
DEPTH = 10  # mappings in mappings
DIGITS = 100  # of a number; what is longer is a string
MERGE = "tag:yaml.org,2002:merge"
EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")  # a number that YAML 1.1 takes for a string


@dataclass
class Leaf:
    """A scalar or a list of scalars."""

    value: Any
    span: Span | None = None


@dataclass
class Branch:
    """A mapping."""

    items: dict[str, Leaf | Branch] = field(default_factory=dict)
    keys: dict[str, Span] = field(default_factory=dict)
    span: Span | None = None

    def put(self, path: str, value: Any) -> None:
        """Set the value at a dotted path, mappings made on the way."""
        first, _, rest = path.partition(".")
        if not rest:
            self.items[first] = Leaf(value)
            return
        inner = self.items.get(first)
        if not isinstance(inner, Branch):
            named = {"name": inner} if isinstance(inner, Leaf) and isinstance(inner.value, str) else {}
            inner = self.items[first] = Branch(dict(named))
        inner.put(rest, value)


def read_tree(source: Source) -> Branch:
    """The tree of a YAML text. Raises `ModgraphError`."""
    if len(source.text) > LETTERS:
        span = Span(source, LETTERS, LETTERS + 1)
        raise ModgraphError([BadYaml(span=span, reason=f"it has more than {LETTERS:,} letters")])
    try:
        node = yaml.compose(source.text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = min(mark.index, max(0, len(source.text) - 1)) if mark else 0
        reason = error.problem or "it is not YAML"
        raise ModgraphError([BadYaml(span=Span(source, at, at + 1), reason=reason)]) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ModgraphError([BadYaml(span=Span(source, 0, 1), reason=str(error).splitlines()[0])]) from error
    except RecursionError:
        raise ModgraphError([BadYaml(span=Span(source, 0, 1), reason="it is nested too deep")]) from None
    if node is None:
        return Branch(span=Span(source, 0, 1))
    if not isinstance(node, yaml.MappingNode):
        raise ModgraphError([BadYaml(span=_span(source, node), reason="it is not a mapping")])
    return _Reader(source).branch(node, ())


def _span(source: Source, node: Any) -> Span:
    return Span(source, node.start_mark.index, max(node.end_mark.index, node.start_mark.index + 1))


@dataclass
class _Reader:
    """Makes branches of YAML's nodes. A node that has several aliases is read, and counts, as often."""

    source: Source
    left: int = NODES

    def branch(self, node: yaml.MappingNode, around: tuple[int, ...]) -> Branch:
        """A mapping within others. Raises `ModgraphError`."""
        if id(node) in around:
            raise self._fault(node, "it holds itself")
        if len(around) > DEPTH:
            raise self._fault(node, "it is nested too deep")
        self._count(node)
        branch = Branch(span=_span(self.source, node))
        for key, value in node.value:
            name = self._key(key)
            if name in branch.items:
                raise ModgraphError([DuplicateKey(span=_span(self.source, key), key=name)])
            branch.keys[name] = _span(self.source, key)
            branch.items[name] = (
                self.branch(value, (*around, id(node)))
                if isinstance(value, yaml.MappingNode)
                else Leaf(self._value(value), _span(self.source, value))
            )
        return branch

    def _key(self, node: Any) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._fault(node, "a key is a word")
        if node.tag == MERGE:
            raise self._fault(node, "<< takes over nothing here: write the keys out, or give their mapping an alias")
        return str(node.value)

    def _value(self, node: Any) -> Any:
        self._count(node)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(self.source, node)
        if not all(isinstance(item, yaml.ScalarNode) for item in node.value):
            raise self._fault(node, "a list holds plain values")
        return tuple(_scalar(self.source, item) for item in node.value)

    def _count(self, node: Any) -> None:
        """Raises `ModgraphError` where there are too many nodes."""
        self.left -= 1 if isinstance(node, yaml.ScalarNode) else 1 + len(node.value)
        if self.left < 0:
            raise self._fault(node, f"it has more than {NODES:,} keys and values, those of aliases included")

    def _fault(self, node: Any, reason: str) -> ModgraphError:
        return ModgraphError([BadYaml(span=_span(self.source, node), reason=reason)])


def _scalar(source: Source, node: yaml.ScalarNode) -> Any:
    kind = node.tag.rpartition(":")[2]
    if kind in ("int", "float", "str") and len(node.value) > DIGITS:
        return node.value
    try:
        if kind == "int":
            return yaml.SafeLoader("").construct_yaml_int(node) if len(node.value) < 30 else node.value
        if kind == "float" or (kind == "str" and node.style is None and EXPONENT.fullmatch(node.value)):
            return float(node.value.replace("_", ""))
    except ValueError:
        return node.value
    if kind == "bool":
        return node.value.lower() in ("true", "yes", "on")
    if kind == "null":
        return None
    if kind not in ("str", "timestamp", "merge", "value"):
        raise ModgraphError([BadYaml(span=_span(source, node), reason=f"!{kind} has no meaning here")])
    return node.value
