"""Reads YAML into a tree whose keys and values have spans.

A text with syntax mistakes is parsed entry by entry, so that each mistake is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import yaml

from modgraph.diagnostics import Report, Source, Span
from modgraph.recipes.errors import BadYaml, DuplicateKey

LETTERS = 2**18  # of a recipe or map
NODES = 100_000  # keys and values of a recipe, repeated ones of aliases included
DEPTH = 10  # mappings in mappings
DIGITS = 100  # of a number; a longer one is a string
MERGE = "tag:yaml.org,2002:merge"
MISTAKES = 20  # reported syntax mistakes of one text
RECOVERED = 2**15  # letters of the longest text to parse entry by entry
LEVELS = 10  # of nested entries
KEY = re.compile(r"^( *)(?![\s#\[\]{},&*!|>%@`]|-\s)[^\n#]*?:(?=[ \t]|$)([^\n]*)", re.MULTILINE)
BLANK = re.compile(r"\s*(#.*)?")
ALIAS = re.compile(r"found undefined alias '(.*)'")
EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")  # a number that YAML 1.1 reads as a string


@dataclass
class Leaf:
    """A scalar, or a list of scalars and lists."""

    value: Any
    span: Span | None = None


@dataclass
class Branch:
    """A mapping; if not `whole`, it lacks unreadable entries, which are reported."""

    items: dict[str, Leaf | Branch] = field(default_factory=dict)
    keys: dict[str, Span] = field(default_factory=dict)
    span: Span | None = None
    whole: bool = True

    def put(self, path: str, leaf: Leaf | Branch, key: Span | None = None) -> None:
        """Set the item at a dotted path and create the mappings above it; `key` is the span of the path."""
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

    def add_missing(self, other: Branch) -> None:
        """Take over the keys of another mapping that this one lacks."""
        self.items = {**other.items, **self.items}
        self.keys = {**other.keys, **self.keys}
        self.whole &= other.whole


def read_tree(source: Source, report: Report) -> Branch:
    """Read the tree of a YAML text; report and skip unreadable entries."""
    start = Span(source, 0, 1)
    unread = Branch(span=start, whole=False)
    if len(source.text) > LETTERS:
        span = Span(source, LETTERS, LETTERS + 1)
        report.add(BadYaml(span=span, reason=f"it has more than {LETTERS:,} letters"))
        return unread
    node = compose(source, report, 0, len(source.text))
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
    """Raised for a node that cannot be read, with the reason."""


@dataclass
class _Reader:
    """Turns YAML nodes into branches. A node with several aliases is read and counted once for each."""

    source: Source
    report: Report
    left: int = NODES

    def branch(self, node: yaml.MappingNode, around: tuple[int, ...]) -> Branch:
        """Read a mapping; `around` identifies the enclosing ones. Raises `_Fault`."""
        if id(node) in around:
            raise _Fault(node, "it contains itself")
        self._count(node, around)
        branch, merged = Branch(span=self._span(node), whole=not isinstance(node, Partial)), list[Branch]()
        for key, value in node.value:
            try:
                if key.tag == MERGE and isinstance(value, yaml.MappingNode):
                    merged.append(self.branch(value, (*around, id(node))))
                    continue
                name = _read_key(key)
                if name in branch.items:
                    self.report.add(DuplicateKey(span=self._span(key), key=name))
                    continue
                branch.keys[name] = self._span(key)
                if isinstance(value, yaml.MappingNode):
                    branch.items[name] = self.branch(value, (*around, id(node)))
                else:
                    branch.items[name] = Leaf(self._value(value, ()), self._span(value))
            except _Fault as fault:
                if self.left < 0:  # too many nodes: read no further
                    raise
                self.report_fault(fault)
                branch.whole = False
        for other in merged:
            branch.add_missing(other)
        return branch

    def _value(self, node: Any, around: tuple[int, ...]) -> Any:
        """Read a scalar, or a list of scalars and lists. Raises `_Fault`."""
        if isinstance(node, yaml.ScalarNode):
            self._count(node, ())
            return _read_scalar(node)
        self._count(node, around)
        if id(node) in around or any(isinstance(item, yaml.MappingNode) for item in node.value):
            raise _Fault(node, "a list must contain plain values or lists of them")
        inside = (*around, id(node))
        return tuple(
            _read_scalar(item) if isinstance(item, yaml.ScalarNode) else self._value(item, inside)
            for item in node.value
        )

    def _count(self, node: Any, around: tuple[int, ...]) -> None:
        """Count a node. Raises `_Fault` for too many nodes or too deep nesting."""
        self.left -= 1 if isinstance(node, yaml.ScalarNode) else 1 + len(node.value)
        if self.left < 0:
            raise _Fault(node, f"it has more than {NODES:,} keys and values, aliases included")
        if len(around) > DEPTH:
            raise _Fault(node, "it is nested too deep")

    def report_fault(self, fault: _Fault) -> None:
        node, reason = fault.args
        self.report.add(BadYaml(span=self._span(node), reason=reason))

    def _span(self, node: Any) -> Span:
        return Span(self.source, node.start_mark.index, max(node.end_mark.index, node.start_mark.index + 1))


def _read_key(node: Any) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _Fault(node, "a key must be a word")
    if node.tag == MERGE:
        raise _Fault(node, "<< needs the alias of a mapping")
    return str(node.value)


def _read_scalar(node: yaml.ScalarNode) -> Any:
    """Return the value of a scalar. Raises `_Fault`."""
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
    """Write a mapping as YAML that `read_tree` reads back."""
    return yaml.dump(record, Dumper=_Dumper, sort_keys=False)


class _Dumper(yaml.SafeDumper):
    """Quotes strings that `read_tree`, unlike YAML 1.1, reads as numbers."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if EXPONENT.fullmatch(text) else None)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_multi_representer(PurePath, lambda dumper, path: _represent_text(dumper, str(path)))


class Partial(yaml.MappingNode):
    """A mapping without its unparsable entries."""


def compose(source: Source, report: Report, start: int, end: int, levels: int = LEVELS) -> yaml.Node | None:
    """Parse some lines of a text; None if they are empty, a `Partial` mapping if mistakes are reported."""
    try:
        loader = yaml.SafeLoader(source.text[start:end])
        loader.index = start  # so that marks count from the beginning of the text
        return loader.get_single_node()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mistake = _describe_mistake(error, source, start)
    mark = yaml.Mark("", start, 0, 0, None, 0)
    part = Partial("", [], mark, mark)
    if (alias := ALIAS.match(mistake.reason)) and f"&{alias[1]}" in source.text[:start]:
        return part  # its anchor is in another entry
    before = len(report.errors)
    if levels and len(source.text) <= RECOVERED:
        part.value += _parse_entries(source, start, end, report, levels - 1)
    if len(report.errors) == before < MISTAKES:
        report.add(mistake)
    return part


def _parse_entries(
    source: Source, start: int, end: int, report: Report, levels: int
) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Parse the entries of a mapping one by one, and the body of an entry that fails."""
    found = list(KEY.finditer(source.text, start, end))
    indent = min((len(each[1]) for each in found), default=0)
    found = [each for each in found if len(each[1]) == indent]
    if len(found) == 1 and BLANK.fullmatch(found[0][2]) and found[0].end() < end:
        key = compose(source, report, found[0].start(), found[0].end(), 0)
        body = compose(source, report, found[0].end() + 1, end, levels)
        if isinstance(key, yaml.MappingNode) and key.value and body is not None:
            yield key.value[0][0], body
    elif len(found) > 1:
        for each, following in zip(found, [*(each.start() for each in found[1:]), end], strict=True):
            node = compose(source, report, each.start(), following, levels)
            if isinstance(node, yaml.MappingNode):
                yield from node.value


def _describe_mistake(error: Exception, source: Source, start: int) -> BadYaml:
    """Describe the syntax mistake in some lines, from `start`, and find its place."""
    last, at, reason = max(0, len(source.text) - 1), start, str(error).splitlines()[0]
    if isinstance(error, RecursionError):
        reason = "it is nested too deep"
    elif isinstance(error, yaml.reader.ReaderError):
        at += error.position
    elif isinstance(error, yaml.MarkedYAMLError):
        reason = error.problem or "it is not YAML"
        is_open = "'<stream end>'" in reason or reason == "found unexpected end of stream"
        marks = [each for each in (error.problem_mark, error.context_mark) if each is not None]
        at = marks[-1 if is_open or reason == "could not find expected ':'" else 0].index if marks else start
        reason = "this has no end" if is_open else reason
    return BadYaml(span=Span(source, min(at, last), min(at, last) + 1), reason=reason)
