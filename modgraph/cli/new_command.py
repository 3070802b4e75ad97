"""Write a starting point: a spec with its recipe, or a copy of another."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source
from modgraph.elaboration import read_standalone
from modgraph.files import exists, write_atomically, writing
from modgraph.log import log
from modgraph.store.run_directory import locate_recipe
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


class BadName(Diagnostic, code="MG117"):
    """A model's name is a word of letters, digits and underscores, and no word of the language. It is that of files
    too, which have at most 255 letters with `.yaml`."""

    message = '"{name}" cannot be the name of a model'
    help = "a name is a word of at most 250 letters, digits and underscores that the language has not reserved"


class FileExists(Diagnostic, code="MG118"):
    """`new` does not overwrite a file. What a spec imports is copied too, unless the same text is there already."""

    message = '"{path}" is there already'
    way_out = "choose another name"


USAGE = ("modgraph new mine",)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the model's name; its spec becomes NAME.mod here")
    what = "a spec to copy, with what it imports and its recipe if it has one"
    parser.add_argument("--from", dest="source", metavar="SPEC", help=what)


def run(options: argparse.Namespace) -> int:
    name: str = options.name
    if not (name.isascii() and name.isidentifier() and len(name) <= LETTERS) or name in set(keywords()):
        raise ModgraphError([BadName(name=name)])
    files, imports = {f"{name}.mod": STARTER.replace("NAME", name)}, dict[str, str]()
    if options.source is not None:
        files, imports = _copy_spec(name, options.source)
    there, faults = [], [FileExists(path=path) for path in files if os.path.lexists(path)]
    for path, text in imports.items():
        found = read(path, Report()) if exists(path) else None
        if found is not None and found.text == text:
            there.append(path)
        elif path in files:
            faults.append(FileExists(path=path, way_out="choose another name: the spec imports a file with this one"))
        elif os.path.lexists(path):
            elsewhere = "run it in an empty folder: the spec imports a file with this name"
            faults.append(FileExists(path=path, way_out=elsewhere))
    if faults:
        raise ModgraphError(faults)
    for path, text in {**files, **{path: text for path, text in imports.items() if path not in there}}.items():
        with writing(path):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
        print(path)
    for path in there:
        log.info(f"{path} is there already, with the same text")
    return 0


def _copy_spec(name: str, spec: str) -> tuple[dict[str, str], dict[str, str]]:
    """A spec's text under a new model name and its recipe, and the files that it imports. Raises `ModgraphError`."""
    report = Report()
    source = read(spec, report)
    file = parse(source, report) if source is not None else None
    if source is None or file is None:
        raise ModgraphError(report.diagnostics)
    span = next((each.name_span for each in file.definitions if each.keyword == "model"), None)
    text = source.text if span is None else source.text[: span.start] + name + source.text[span.end :]
    renamed = parse(Source(source.name, text), report)
    copy = None if renamed is None else read_standalone(renamed, report)
    if copy is None or report.errors:
        raise ModgraphError(report.list_diagnostics())
    files = {f"{name}.mod": copy.text}
    recipe = locate_recipe(spec)
    if os.path.isfile(recipe):  # noqa: PTH113 (`Path.is_file` raises for a name that is too long)
        content = read(recipe, report)
        if content is None:
            raise ModgraphError(report.diagnostics)
        files[f"{name}.yaml"] = content.text
    return files, dict(copy.imports)
