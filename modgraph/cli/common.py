"""What several commands share: options such as `-s name=value`, loading a spec, printing warnings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from modgraph.diagnostics import Diagnostic, ModgraphError, render_all
from modgraph.log import log

if TYPE_CHECKING:
    from modgraph.backends.onnx import Report
    from modgraph.prediction.predictions import Predictions
    from modgraph.program import Program
    from modgraph.store.architecture import Architecture
    from modgraph.study.plan import Plan


class BadOverride(Diagnostic, code="MG110"):
    """`-s` takes NAME=VALUE: a model parameter (`-s k=2`) or a dotted recipe key (`-s train.seed=1`).

    Where a spec is read, `-s @MAP=FOLDER` sets the parameters in the config.json of a published checkpoint, by a map of
    weights: `-s @specs/zoo/qwen3_hub.yaml=Qwen3-30B-A3B`. Other `-s` come before them.
    """

    message = '-s must be NAME=VALUE, not "{given}"'
    help = "for example: -s k=2, or for a recipe: -s train.seed=1"


class BadLength(Diagnostic, code="MG126"):
    """`--length` takes AXIS=N: an axis without a number in the spec, and its length."""

    message = '--length must be AXIS=N with N from 1 to 999999999, not "{given}"'
    help = "for example: --length time=100"


class LengthGivenTwice(Diagnostic, code="MG127"):
    """An axis has one length in a count."""

    message = '--length gives the axis "{name}" twice'
    help = "keep one of them"


PUBLISHED = "@"  # begins a text @MAP=FOLDER of `-s`
ARCHITECTURE = "a spec, a run's folder, a checkpoint, a graph (.json) or a bundle"
LENGTH = "the length of an axis of any length (1)"
UNCHECKED = "even if the bundle has changed since its export"
SETTING: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME=VALUE"}
OPTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "set": (("-s", "--set"), SETTING | {"help": "set a parameter of the model, or a dotted key of the recipe"}),
    "length": (("--length",), SETTING | {"metavar": "AXIS=N", "help": LENGTH}),
    "json": (("--json",), {"action": "store_true", "help": "one JSON object on stdout"}),
    "force": (("--force",), {"action": "store_true", "help": "overwrite a file that modgraph did not write"}),
    "unchecked": (("--unchecked",), {"action": "store_true", "help": UNCHECKED}),
}


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options that several commands have."""
    for flags, facts in (OPTIONS[name] for name in names):
        parser.add_argument(*flags, **facts)


def read_overrides(texts: list[str], spec: str | None = None) -> dict[str, Any]:
    """The values of texts NAME=VALUE, by name, and of @MAP=FOLDER the parameters of a spec in a config.json, which come
    first. Raises `ModgraphError`."""
    from modgraph.elaboration import read_value

    found = dict[str, Any]()
    for map_, sign, folder in (text[1:].partition("=") for text in texts if text[:1] == PUBLISHED and spec is not None):
        from modgraph.training.published import read_config

        if not (map_ and sign and folder):
            raise ModgraphError([BadOverride(given=f"{PUBLISHED}{map_}{sign}{folder}")])
        found |= read_config(map_, folder, spec or "")
    texts = [text for text in texts if text[:1] != PUBLISHED or spec is None]

    def read(name: str, text: str) -> Any:
        return None if text == "null" and "." in name else read_value(text)  # as a recipe says it

    return found | {name: read(name, text) for name, text in split_overrides(texts)}


def split_overrides(texts: list[str]) -> list[tuple[str, str]]:
    """The names and values of texts NAME=VALUE. Raises `ModgraphError`."""
    split = [given.partition("=") for given in texts]
    named = [bool(sign) and all(part.isidentifier() for part in name.split(".")) for name, sign, _ in split]
    if not all(named):
        raise ModgraphError(
            BadOverride(given=given) for given, is_right in zip(texts, named, strict=True) if not is_right
        )
    return [(name, text) for name, _, text in split]


def read_lengths(given: list[str]) -> dict[str, int]:
    """The lengths of all `--length`, by axis. Raises `ModgraphError`."""
    lengths = dict[str, int]()
    for text in given:
        name, _, number = text.partition("=")
        if not is_count(number):
            raise ModgraphError([BadLength(given=text)])
        if name in lengths:
            raise ModgraphError([LengthGivenTwice(name=name)])
        lengths[name] = int(number)
    return lengths


def is_count(text: str) -> bool:
    """Whether a text is a whole number from 1 to 999999999."""
    return text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0


def open_architecture(path: str, options: argparse.Namespace) -> Architecture:
    """What stands at a path, under the command's `-s`, its warnings printed. Raises `ModgraphError`."""
    from modgraph.store.architecture import Kind, find_kind, read_architecture

    spec = path if find_kind(path) is Kind.SPEC else None
    found = read_architecture(path, read_overrides(options.set, spec))
    warn(found)
    return found


def warn(found: Program | Architecture | Report | Predictions | Plan) -> None:
    """Print the warnings of what was read or written."""
    if found.warnings:
        log.warning(render_all(found.warnings))
