"""Diagnostics about recipes and other YAML (MG5xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NoRecipe(Diagnostic, code="MG501"):
    """A training needs a recipe: a YAML file next to the spec with the same name, or the one that `--recipe` names."""

    message = 'cannot find the recipe "{path}"'
    help = "write one next to the spec, or name one: --recipe FILE"


class BadYaml(Diagnostic, code="MG502"):
    """A recipe is a YAML mapping with the sections model, start, data and train. A map of weights is a mapping too."""

    message = "invalid YAML: {reason}"
    help = "write a mapping of plain values and lists, as the files in specs do"
    reason: str


class UnknownKey(Diagnostic, code="MG503"):
    """Nothing reads this key of a recipe."""

    message = 'unknown key "{key}" in {section}'
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
    """No data set, optimizer or schedule has this name."""

    message = 'unknown {what} "{name}"'
    help = "{suggestion}"


class DuplicateKey(Diagnostic, code="MG507"):
    """A mapping of a recipe has the same key twice."""

    message = '"{key}" occurs twice'
    help = "keep one of them"
