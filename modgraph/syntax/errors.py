"""Diagnostics for text that cannot be read (MG1xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class UnreadableFile(Diagnostic, code="MG101"):
    """A file on the command line or in an import cannot be read: it is missing, a folder, or not permitted."""

    message = 'cannot read "{path}": {reason}'
    way_out = ""


class NotText(Diagnostic, code="MG102"):
    """A spec is UTF-8 text without NUL characters, at most 2 MiB long."""

    message = '"{path}" is not a spec: {reason}'
    help = "a spec is UTF-8 text of at most {limit} bytes"


class StrayCharacter(Diagnostic, code="MG103"):
    """No word, number, string or sign of the language begins with this character."""

    message = "unexpected {found}"
    example = "model m() { input x: float[4] output x ? }"


class UnexpectedText(Diagnostic, code="MG104"):
    """The grammar does not allow this word or sign here. The message names what it allows."""

    message = "expected {expected}, found {found}"
    example = "model m() { input x float[4] output x }"
    way_out = ""


class TooDeep(Diagnostic, code="MG105"):
    """Brackets, operators or bodies are nested beyond the limit in the message."""

    message = "{what} nested more than {limit} deep"
    help = "name a part of it in its own statement, and use the name"
    example = "model m() { input x: float[4] output x x = " + "(" * 101 + " }"


class NumberTooLarge(Diagnostic, code="MG106"):
    """A number exceeds the limit of sizes and settings."""

    message = "the number must be at most {limit}"
    help = "write a smaller number"
    example = "model m(a=99999999999999999999) { input x: float[4] output x }"


class NotAName(Diagnostic, code="MG240"):
    """The left side of an output or a loss is a name, or the name of a member of a family."""

    message = "expected a name left of =, found an expression"
    help = "write {keyword} NAME = …, or {keyword} NAME[k] = …"
    example = "model m() { input x: float[4] output x + 1 = x }"


class TooLong(Diagnostic, code="MG115"):
    """A spec has more words and signs, a list more members, or a name more letters than any architecture needs."""

    message = "too many {what}: at most {limit}"
    example = "model m(sizes=[" + "1, " * 4097 + "]) { input x: float[4] output x }"
    way_out = "generate less: repeat and for write many layers in a few lines"


class NothingHere(Diagnostic, code="MG107"):
    """Without a model there is nothing to build."""

    message = "the file declares no model"
    help = "begin with: model NAME(parameter=value) {{ … }}"
    example = "# only a comment"


class SeveralModels(Diagnostic, code="MG108"):
    """A file declares one model, so that a command knows which to build."""

    message = '"{name}" is a second model, and a file has one'
    help = "move it to its own file"
    example = "model a() { input x: float[4] output x } model b() { input x: float[4] output x }"
