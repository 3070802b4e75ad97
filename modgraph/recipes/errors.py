"""Messages about recipes and other YAML (MG5xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NoRecipe(Diagnostic):
    """A training needs a recipe: a YAML file beside the spec, of the same name, or one named with `--recipe`."""

    code = "MG501"
    message = 'there is no recipe "{path}"'
    help = "write one beside the spec, or name one with --recipe FILE"


class BadYaml(Diagnostic):
    """A recipe is a YAML mapping with the sections model, start, data and train; a map of weights is one too."""

    code = "MG502"
    message = "this YAML cannot be used: {reason}"
    help = "write a mapping of plain values and lists, as the files in specs do"
    reason: str


class UnknownKey(Diagnostic):
    """A recipe has a key that nothing reads."""

    code = "MG503"
    message = '{section} has no key "{key}"'
    help = "{suggestion}"


class BadValue(Diagnostic):
    """A key of a recipe has a value of the wrong kind or out of range."""

    code = "MG504"
    message = "{key} {problem}"
    help = "{key}: {meaning}"


class MissingKey(Diagnostic):
    """A recipe lacks a key that has no default."""

    code = "MG505"
    message = "{section} needs {key}: {meaning}"
    help = "add a line: {key}: …"


class UnknownChoice(Diagnostic):
    """A recipe names a data set, optimizer or schedule that does not exist."""

    code = "MG506"
    message = 'there is no {what} called "{name}"'
    help = "{suggestion}"


class DuplicateKey(Diagnostic):
    """A mapping of a recipe has the same key twice."""

    code = "MG507"
    message = '"{key}" stands here twice'
    help = "keep one of them"
