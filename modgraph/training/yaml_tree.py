"""A YAML text as a tree whose every key and value knows its place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from modgraph.diagnostics import ModgraphError, Source, Span
from modgraph.training.errors import BadYaml, DuplicateKey

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
    return _branch(source, node, 0)


def _span(source: Source, node: Any) -> Span:
    return Span(source, node.start_mark.index, max(node.end_mark.index, node.start_mark.index + 1))


def _branch(source: Source, node: yaml.MappingNode, depth: int) -> Branch:
    if depth > 10:
        raise ModgraphError([BadYaml(span=_span(source, node), reason="it is nested too deep")])
    branch = Branch(span=_span(source, node))
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise ModgraphError([BadYaml(span=_span(source, key), reason="a key is a word")])
        if key.value in branch.items:
            raise ModgraphError([DuplicateKey(span=_span(source, key), key=key.value)])
        branch.keys[key.value] = _span(source, key)
        branch.items[key.value] = (
            _branch(source, value, depth + 1)
            if isinstance(value, yaml.MappingNode)
            else Leaf(_value(source, value), _span(source, value))
        )
    return branch


def _value(source: Source, node: Any) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return _scalar(source, node)
    if not all(isinstance(item, yaml.ScalarNode) for item in node.value):
        raise ModgraphError([BadYaml(span=_span(source, node), reason="a list holds plain values")])
    return tuple(_scalar(source, item) for item in node.value)


def _scalar(source: Source, node: yaml.ScalarNode) -> Any:
    kind = node.tag.rpartition(":")[2]
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
