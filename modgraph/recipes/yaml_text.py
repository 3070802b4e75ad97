"""YAML text to nodes, with a report of every syntax mistake: it parses a text with mistakes entry by entry."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from modgraph.diagnostics import Report, Source, Span
from modgraph.recipes.errors import BadYaml

MISTAKES = 20  # syntax mistakes that are reported for one text
RECOVERED = 2**15  # letters of the longest text that is parsed entry by entry
LEVELS = 10  # of nested entries
KEY = re.compile(r"^( *)(?![\s#\[\]{},&*!|>%@`]|-\s)[^\n#]*?:(?=[ \t]|$)([^\n]*)", re.MULTILINE)
BLANK = re.compile(r"\s*(#.*)?")
ALIAS = re.compile(r"found undefined alias '(.*)'")


class Partial(yaml.MappingNode):
    """A mapping without the entries that could not be parsed."""


def compose(source: Source, report: Report) -> yaml.Node | None:
    """The node of a text, None where it is empty; a mapping with reported mistakes is a `Partial`."""
    return _compose(source, 0, len(source.text), report, LEVELS)


def _compose(source: Source, start: int, end: int, report: Report, levels: int) -> yaml.Node | None:
    """The node of some lines of a text."""
    try:
        loader = yaml.SafeLoader(source.text[start:end])
        loader.index = start  # marks then count from the beginning of the text
        return loader.get_single_node()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mistake = _mistake(error, source, start)
    mark = yaml.Mark("", start, 0, 0, None, 0)
    part = Partial("", [], mark, mark)
    if (alias := ALIAS.match(mistake.reason)) and f"&{alias[1]}" in source.text[:start]:
        return part  # its anchor stands in another entry
    before = len(report.errors)
    if levels and len(source.text) <= RECOVERED:
        part.value += _entries(source, start, end, report, levels - 1)
    if len(report.errors) == before < MISTAKES:
        report.add(mistake)
    return part


def _entries(
    source: Source, start: int, end: int, report: Report, levels: int
) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """The entries of a mapping that can be parsed, each by itself, and the body of an entry that cannot."""
    found = list(KEY.finditer(source.text, start, end))
    indent = min((len(each[1]) for each in found), default=0)
    found = [each for each in found if len(each[1]) == indent]
    if len(found) == 1 and BLANK.fullmatch(found[0][2]) and found[0].end() < end:
        key = _compose(source, found[0].start(), found[0].end(), report, 0)
        body = _compose(source, found[0].end() + 1, end, report, levels)
        if isinstance(key, yaml.MappingNode) and key.value and body is not None:
            yield key.value[0][0], body
    elif len(found) > 1:
        for each, following in zip(found, [*(each.start() for each in found[1:]), end], strict=True):
            node = _compose(source, each.start(), following, report, levels)
            if isinstance(node, yaml.MappingNode):
                yield from node.value


def _mistake(error: Exception, source: Source, start: int) -> BadYaml:
    """The syntax mistake in some lines, from `start`, and its place."""
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
        reason = "what begins here does not end" if is_open else reason
    return BadYaml(span=Span(source, min(at, last), min(at, last) + 1), reason=reason)
