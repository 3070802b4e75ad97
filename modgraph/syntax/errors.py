"""Diagnostics for text that cannot be read (MG1xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class UnreadableFile(Diagnostic, code="MG101"):
    """A file named on the command line or in an import cannot be read: it is missing, a folder, or not permitted."""

    message = 'cannot read "{path}": {reason}'
    way_out = ""


class NotText(Diagnostic, code="MG102"):
    """A spec is a text in UTF-8 without NUL characters, at most 2 MiB long."""

    message = '"{path}" is not a spec: {reason}'
    help = "a spec is UTF-8 text of at most {limit} bytes"


class StrayCharacter(Diagnostic, code="MG103"):
    """A character stands where no word, number, string or sign of the language begins."""

    message = "{found} does not begin any word or sign of the language"
    example = "model m() { input x: float[4] output x ? }"


class UnexpectedText(Diagnostic, code="MG104"):
    """A word or sign stands where the grammar does not allow it. The message names what could stand there."""

    message = "{found} cannot stand here; expected {expected}"
    example = "model m() { input x float[4] output x }"
    way_out = ""


class TooDeep(Diagnostic, code="MG105"):
    """Brackets, operators or bodies are nested beyond the limit that the message states."""

    message = "{what} nested more than {limit} deep"
    help = "name a part of it in a statement of its own, and use the name"
    example = "model m() { input x: float[4] output x x = " + "(" * 101 + " }"


class NumberTooLarge(Diagnostic, code="MG106"):
    """A number is beyond what a size or setting can be."""

    message = "the number is too large: at most {limit}"
    help = "write a smaller number"
    example = "model m(a=99999999999999999999) { input x: float[4] output x }"


class NotAName(Diagnostic, code="MG240"):
    """An output or a loss is given a name, or the name of a member of a family, left of the equals sign."""

    message = "a name stands left of =, and this is an expression"
    help = "write {keyword} NAME = …, or {keyword} NAME[k] = …"
    example = "model m() { input x: float[4] output x + 1 = x }"


class TooLong(Diagnostic, code="MG115"):
    """A spec has more words and signs, a list more members, or a name more letters than any architecture needs."""

    message = "too many {what}: at most {limit}"
    example = "model m(sizes=[" + "1, " * 4097 + "]) { input x: float[4] output x }"
    way_out = "generate less: repeat and for write many layers in a few lines"


class NothingHere(Diagnostic, code="MG107"):
    """The file declares no model, so there is nothing to build."""

    message = "there is no model in this file"
    help = "begin with: model NAME(parameter=value) {{ … }}"
    example = "# only a comment"


class SeveralModels(Diagnostic, code="MG108"):
    """A file declares one model: a command must know which to build."""

    message = 'a second model, "{name}": a file holds one'
    help = "move it to a file of its own"
    example = "model a() { input x: float[4] output x } model b() { input x: float[4] output x }"
