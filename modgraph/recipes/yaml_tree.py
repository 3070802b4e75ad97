"""A YAML text as a tree whose every key and value knows its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from modgraph.diagnostics import Report, Source, Span
from modgraph.recipes.errors import BadYaml, DuplicateKey
from modgraph.recipes.yaml_text import Partial, compose

LETTERS = 2**18  # of a recipe or map
NODES = 100_000  # keys and values of a recipe, those that aliases repeat included
DEPTH = 10  # mappings in mappings
DIGITS = 100  # of a number; what is longer is a string
MERGE = "tag:yaml.org,2002:merge"
EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")  # a number that YAML 1.1 takes for a string


@dataclass
class Leaf:
    """A scalar, or a list of scalars and lists."""

    value: Any
    span: Span | None = None


@dataclass
class Branch:
    """A mapping; one that is not `whole` lacks entries that could not be read, which are reported."""

    items: dict[str, Leaf | Branch] = field(default_factory=dict)
    keys: dict[str, Span] = field(default_factory=dict)
    span: Span | None = None
    whole: bool = True

    def put(self, path: str, leaf: Leaf, key: Span | None = None) -> None:
        """Set the leaf at a dotted path and create the mappings above it; `key` is the span of the path."""
        first, _, rest = path.partition(".")
        if key is not None:
            self.keys[first] = key
        if not rest:
            self.items[first] = leaf
            return
        inner = self.items.get(first)
        if not isinstance(inner, Branch):
            named = {"name": inner} if isinstance(inner, Leaf) and isinstance(inner.value, str) else {}
            inner = self.items[first] = Branch(dict(named), span=key if inner is None else inner.span)
        inner.put(rest, leaf, key)


def read_tree(source: Source, report: Report) -> Branch:
    """The tree of a YAML text. Reports what cannot be read and leaves it out."""
    start = Span(source, 0, 1)
    unread = Branch(span=start, whole=False)
    if len(source.text) > LETTERS:
        span = Span(source, LETTERS, LETTERS + 1)
        report.add(BadYaml(span=span, reason=f"it has more than {LETTERS:,} letters"))
        return unread
    node = compose(source, report)
    if node is None:
        return Branch(span=start)
    reader = _Reader(source, report)
    try:
        if not isinstance(node, yaml.MappingNode):
            raise _Fault(node, "it is not a mapping")
        return reader.branch(node, ())
    except _Fault as fault:
        reader.report_fault(fault)
        return unread


class _Fault(Exception):
    """A node cannot be read, and why."""


@dataclass
class _Reader:
    """Makes branches of YAML's nodes. A node that has several aliases is read, and counts, as often."""

    source: Source
    report: Report
    left: int = NODES

    def branch(self, node: yaml.MappingNode, around: tuple[int, ...]) -> Branch:
        """A mapping within others. Raises `_Fault`."""
        if id(node) in around:
            raise _Fault(node, "it holds itself")
        self._count(node, around)
        branch = Branch(span=self._span(node), whole=not isinstance(node, Partial))
        for key, value in node.value:
            try:
                name = _key(key)
                if name in branch.items:
                    self.report.add(DuplicateKey(span=self._span(key), key=name))
                    continue
                branch.keys[name] = self._span(key)
                if isinstance(value, yaml.MappingNode):
                    branch.items[name] = self.branch(value, (*around, id(node)))
                else:
                    branch.items[name] = Leaf(self._value(value, ()), self._span(value))
            except _Fault as fault:
                if self.left < 0:  # nothing after it is read either
                    raise
                self.report_fault(fault)
                branch.whole = False
        return branch

    def _value(self, node: Any, around: tuple[int, ...]) -> Any:
        """A scalar, or a list of scalars and lists. Raises `_Fault`."""
        if isinstance(node, yaml.ScalarNode):
            self._count(node, ())
            return _scalar(node)
        self._count(node, around)
        if id(node) in around or any(isinstance(item, yaml.MappingNode) for item in node.value):
            raise _Fault(node, "a list holds plain values and lists of them")
        inside = (*around, id(node))
        return tuple(
            _scalar(item) if isinstance(item, yaml.ScalarNode) else self._value(item, inside) for item in node.value
        )

    def _count(self, node: Any, around: tuple[int, ...]) -> None:
        """Raises `_Fault` where there are too many nodes, or too many around one."""
        self.left -= 1 if isinstance(node, yaml.ScalarNode) else 1 + len(node.value)
        if self.left < 0:
            raise _Fault(node, f"it has more than {NODES:,} keys and values, those of aliases included")
        if len(around) > DEPTH:
            raise _Fault(node, "it is nested too deep")

    def report_fault(self, fault: _Fault) -> None:
        node, reason = fault.args
        self.report.add(BadYaml(span=self._span(node), reason=reason))

    def _span(self, node: Any) -> Span:
        return Span(self.source, node.start_mark.index, max(node.end_mark.index, node.start_mark.index + 1))


def _key(node: Any) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _Fault(node, "a key is a word")
    if node.tag == MERGE:
        raise _Fault(node, "<< takes over nothing here: write the keys out, or give their mapping an alias")
    return str(node.value)


def _scalar(node: yaml.ScalarNode) -> Any:
    """The value of a scalar. Raises `_Fault`."""
    kind = node.tag.rpartition(":")[2]
    if kind in ("int", "float", "str") and len(node.value) > DIGITS:
        return node.value
    try:
        if kind == "int":
            return yaml.SafeLoader("").construct_yaml_int(node)
        if kind == "float" or (kind == "str" and node.style is None and EXPONENT.fullmatch(node.value)):
            return float(node.value.replace("_", ""))
    except ValueError:
        return node.value
    if kind == "bool":
        return node.value.lower() in ("true", "yes", "on")
    if kind == "null":
        return None
    if kind not in ("str", "timestamp", "merge", "value"):
        raise _Fault(node, f"!{kind} has no meaning here")
    return node.value


def dump_yaml(record: Mapping[str, Any]) -> str:
    """The text that `read_tree` reads as this mapping."""
    return yaml.dump(record, Dumper=_Dumper, sort_keys=False)


class _Dumper(yaml.SafeDumper):
    """Quotes strings that `read_tree` reads as numbers, though YAML 1.1 does not."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if EXPONENT.fullmatch(text) else None)


_Dumper.add_representer(str, _represent_text)
