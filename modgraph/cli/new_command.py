"""Write a starting point: a spec with its recipe, or a copy of another."""

from __future__ import annotations

import argparse
import os
from itertools import product
from pathlib import Path

from modgraph.diagnostics import Diagnostic, ModgraphError, Report, Source
from modgraph.elaboration import read_standalone
from modgraph.files import exists, list_shipped_specs, write_atomically, writing
from modgraph.log import log
from modgraph.recipes.maps import place_maps
from modgraph.store.run_directory import locate_recipe
from modgraph.syntax import keywords, parse, read
from modgraph.syntax.format import format_source

LETTERS = 250  # of a name, which is that of files too
STARTERS = Path(__file__).parent / "starters"
TASKS = ("images", "texts", "table")
# the sentences of a text to begin with: who does what, with what, and how they are
SENTENCES = {
    "dog": ("chases follows", "ball stick"),
    "cat": ("watches chases", "bird mouse"),
    "child": ("draws reads", "picture book"),
    "teacher": ("reads writes", "book letter"),
    "farmer": ("grows sells", "corn wool"),
}
KINDS = ("small", "old", "happy", "quiet")


class BadName(Diagnostic, code="MG117"):
    """A model's name is a word of letters, digits and underscores, and no word of the language. Its files have the same
    name, with at most 255 letters including `.yaml`."""

    message = '"{name}" cannot be the name of a model'
    help = "use at most 250 letters, digits and underscores, and no reserved word"


class FileExists(Diagnostic, code="MG118"):
    """`new` does not overwrite a file. What a spec imports is copied too, unless a file with the same text exists."""

    message = '"{path}" exists'
    way_out = "choose another name"


class NoSuchSpec(Diagnostic, code="MG122"):
    """`new --from` takes the path of a spec, or the name of one that comes with modgraph."""

    message = 'cannot read "{name}": no such file, and no shipped spec of that name'
    help = "check the path, or name one of: {known}"


USAGE = ("modgraph new mine", "modgraph new words --task texts", "modgraph new copy --from zoo/mixtral")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the model's name, for NAME.mod in this folder")
    origin = parser.add_mutually_exclusive_group()
    what = "a spec to copy with its imports and recipe: a path, or a shipped one, such as smn or zoo/mixtral"
    origin.add_argument("--from", dest="source", metavar="SPEC", help=what)
    what = "the task to start with, data included (images)"
    origin.add_argument("--task", choices=TASKS, default="images", help=what)


def run(options: argparse.Namespace) -> int:
    name: str = options.name
    if not (name.isascii() and name.isidentifier() and len(name) <= LETTERS) or name in set(keywords()):
        raise ModgraphError([BadName(name=name)])
    files, imports = _start(name, options.task), dict[str, str]()
    if options.source is not None:
        files, imports = _copy_spec(name, _find_spec(options.source))
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
        log.info(f"{path} exists, with the same text")
    return 0


def _start(name: str, task: str) -> dict[str, str]:
    """The files to begin a task with: a spec, its recipe, and a text where there is no other data."""
    texts = {suffix: (STARTERS / f"{task}{suffix}").read_text(encoding="utf-8") for suffix in (".mod", ".yaml")}
    files = {f"{name}{suffix}": text.replace("NAME", name) for suffix, text in texts.items()}
    return {**files, f"{name}.txt": write_sentences()} if task == "texts" else files


def write_sentences() -> str:
    """A text whose words follow from each other: every sentence of a small grammar, in an order that mixes them."""
    sentences = [
        f"the {kind} {who} {verb} the {of} {what}"
        for who, (verbs, objects) in SENTENCES.items()
        for verb, what, kind, of in product(verbs.split(), objects.split(), KINDS, KINDS)
    ]
    step = 97  # has no divisor in common with their number
    return "".join(f"{sentences[at * step % len(sentences)]}\n" for at in range(len(sentences)))


def _find_spec(name: str) -> str:
    """The path of a spec, given or by the name of one that comes with modgraph. Raises `ModgraphError`."""
    shipped = list_shipped_specs()
    shipped |= {each.rpartition("/")[2]: path for each, path in shipped.items()}
    if exists(name) or name.removesuffix(".mod") not in shipped:
        if not exists(name) and not name.endswith(".mod"):
            raise ModgraphError([NoSuchSpec(name=name, known=", ".join(list_shipped_specs()))])
        return name
    return str(shipped[name.removesuffix(".mod")])


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
    is_in_layout = format_source(source, report) == source.text
    files = {f"{name}.mod": (is_in_layout and format_source(Source(source.name, copy.text), report)) or copy.text}
    recipe = locate_recipe(spec)
    if os.path.isfile(recipe):  # noqa: PTH113 (`Path.is_file` raises for a name that is too long)
        content = read(recipe, report)
        if content is None:
            raise ModgraphError(report.diagnostics)
        files[f"{name}.yaml"], maps = place_maps(content.text)
        files |= maps
    return files, dict(copy.imports)
