"""Diagnostics about recipes and other YAML (MG5xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NoRecipe(Diagnostic, code="MG501"):
    """A training needs a recipe: a YAML file beside the spec, of the same name, or one named with `--recipe`."""

    message = 'there is no recipe "{path}"'
    help = "write one next to the spec, or name one with --recipe FILE"


class BadYaml(Diagnostic, code="MG502"):
    """A recipe is a YAML mapping with the sections model, start, data and train; a map of weights is one too."""

    message = "this YAML cannot be used: {reason}"
    help = "write a mapping of plain values and lists, as the files in specs do"
    reason: str


class UnknownKey(Diagnostic, code="MG503"):
    """A recipe has a key that nothing reads."""

    message = '{section} has no key "{key}"'
    help = "{suggestion}"


class BadValue(Diagnostic, code="MG504"):
    """A key of a recipe has a value of the wrong kind or out of range."""

    message = "{key} {problem}"
    help = "{key}: {meaning}"


class MissingKey(Diagnostic, code="MG505"):
    """A recipe lacks a key that has no default."""

    message = "{section} needs {key}: {meaning}"
    help = "add a line: {key}: …"


class UnknownChoice(Diagnostic, code="MG506"):
    """A recipe names a data set, optimizer or schedule that does not exist."""

    message = 'there is no {what} called "{name}"'
    help = "{suggestion}"


class DuplicateKey(Diagnostic, code="MG507"):
    """A mapping of a recipe has the same key twice."""

    message = '"{key}" stands here twice'
    help = "keep one of them"
