"""The tour: steps that comments in the pages of the tutorial mark. Texts, specs and answers are those of the pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from modgraph.diagnostics import ModgraphError
from modgraph.files import list_tutorial
from modgraph.play.documents import WrongParameters
from modgraph.play.errors import BrokenStep
from modgraph.play.facts import read_facts

Step = dict[str, Any]
MARK = re.compile(r"^<!-- tour\n(.*?)^-->\n", re.MULTILINE | re.DOTALL)
SPEC = re.compile(r'^```mod title="([^"]+)"\n(.*?)^```\n', re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"\A# (?:\d+\. )?(.*)\n")
TASK = "**Task:**"  # what stands before is for readers who install modgraph
KEYS = {"title", "begin", "answer", "check", "warnings"}


def read_tour(pages: Sequence[Path] | None = None) -> list[Step]:
    """The steps in order: `title`, `page`, `text` (Markdown from the task on), `file`, `begin` and `answer` (specs),
    `check` (facts), `warnings` (whether an answer may have some). Raises `ModgraphError`."""
    texts = {page.stem: page.read_text(encoding="utf-8") for page in (list_tutorial() if pages is None else pages)}
    blocks = {f"{stem}/{name}": spec for stem, text in texts.items() for name, spec in SPEC.findall(text)}
    steps = []
    for stem, text in texts.items():
        title, start = TITLE.match(text), max(text.find(TASK), 0)
        for mark in MARK.finditer(text):
            try:
                step = _read_step(mark[1], stem, text[start : mark.start()], blocks)
            except (WrongParameters, yaml.YAMLError) as error:
                raise ModgraphError([BrokenStep(page=f"{stem}.md", reason=str(error).replace("\n", " "))]) from error
            steps.append({"title": title[1] if title else stem, "page": stem, **step})
            start = mark.end()
    return steps


def _read_step(mark: str, stem: str, text: str, blocks: Mapping[str, str]) -> Step:
    """A step from its mark and the text before it. Raises `WrongParameters` and `YAMLError`."""
    found = yaml.safe_load(mark)
    if not isinstance(found, Mapping) or {"begin", "answer", "check"} - {*found} or {*found} - KEYS:
        raise WrongParameters(f"a mark has begin, answer and check, and may have {', '.join(sorted(KEYS))}")
    read_facts(found["check"])
    answer = str(found["answer"])
    begin = found["begin"]
    first = str(begin[answer]) if isinstance(begin, Mapping) else _find(str(begin), stem, blocks)
    named = {"title": str(found["title"])} if "title" in found else {}
    visible = SPEC.sub(lambda block: "" if block[1] in (answer, begin) else block[0], TITLE.sub("", text)).strip()
    specs = {"file": answer, "begin": first, "answer": _find(answer, stem, blocks)}
    return {**named, "text": visible, **specs, "check": found["check"], "warnings": bool(found.get("warnings"))}


def _find(name: str, stem: str, blocks: Mapping[str, str]) -> str:
    """A spec of this page by its title, or of another one as `PAGE/TITLE`. Raises `WrongParameters`."""
    place = name if "/" in name else f"{stem}/{name}"
    if place not in blocks:
        raise WrongParameters(f'no page has the spec "{place}"')
    return blocks[place]
