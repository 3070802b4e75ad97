"""Begin a spec: a small model to change, or a copy of another under a new name."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from modgraph.diagnostics import Diagnostic, ModgraphError, Report
from modgraph.files import write_atomically
from modgraph.syntax import keywords, parse, read

LETTERS = 250  # of a name, which is that of files too

STARTER = """\
# A pool of experts that agree on who takes which patch of an image.
model NAME(classes=10, experts=4, width=64) {
  input  image: float[1, 28, 28]
  target label: class[classes]

  tokenizer patches = patch_embed(7, width) -> position
  pool      expert[experts] = linear(2 * width) -> gelu -> linear(width)
  router    agree = agreement(iterations=2)

  logits = image -> patches -> expert by agree -> mean -> linear(classes)

  output logits
  loss cross_entropy(logits, label)
  loss 0.01 * importance(agree)
}
"""


class BadName(Diagnostic):
    """A model's name is a word of letters, digits and underscores, and no word of the language. It is that of files
    too, which have at most 255 letters with `.yaml`."""

    code = "MG117"
    message = '"{name}" cannot be the name of a model'
    help = "a name is a word of at most 250 letters, digits and underscores that the language has not reserved"
    name: str


class FileExists(Diagnostic):
    """`new` does not overwrite a file."""

    code = "MG118"
    message = '"{path}" is there already'
    help = "choose another name"
    path: str


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the model's name; its spec becomes NAME.mod here")
    parser.add_argument("--from", dest="source", metavar="SPEC", help="a spec to copy, with its recipe if it has one")


def run(options: argparse.Namespace) -> int:
    name: str = options.name
    if not (name.isascii() and name.isidentifier() and len(name) <= LETTERS) or name in set(keywords()):
        raise ModgraphError([BadName(name=name)])
    files = {f"{name}.mod": STARTER.replace("NAME", name)}
    if options.source is not None:
        files = _copied(name, options.source)
    for path in files:
        if os.path.lexists(path):
            raise ModgraphError([FileExists(path=path)])
    for path, text in files.items():
        write_atomically(path, text.encode())
        print(path)
    return 0


def _copied(name: str, spec: str) -> dict[str, str]:
    """A spec's text under a new model name, and its recipe. Raises `ModgraphError`."""
    report = Report()
    source = read(spec, report)
    file = parse(source, report) if source is not None else None
    if source is None or file is None:
        raise ModgraphError(report.diagnostics)
    span = next((each.name_span for each in file.definitions if each.keyword == "model"), None)
    text = source.text if span is None else source.text[: span.start] + name + source.text[span.end :]
    files = {f"{name}.mod": text}
    recipe = Path(spec).with_suffix(".yaml")
    if os.path.isfile(recipe):  # noqa: PTH113 (`Path.is_file` raises for a name that is too long)
        content = read(recipe, report)
        if content is None:
            raise ModgraphError(report.diagnostics)
        files[f"{name}.yaml"] = content.text
    return files
