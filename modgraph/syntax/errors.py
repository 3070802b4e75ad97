"""Messages about text that cannot be read (MG1xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class UnreadableFile(Diagnostic):
    """A file named on the command line or in an import cannot be read: it is missing, a folder, or not permitted."""

    code = "MG101"
    message = 'cannot read "{path}": {reason}'
    way_out = ""


class NotText(Diagnostic):
    """A spec is a text in UTF-8 without NUL characters, at most 2 MiB long."""

    code = "MG102"
    message = '"{path}" is not a spec: {reason}'
    help = "a spec is UTF-8 text of at most {limit} bytes"


class StrayCharacter(Diagnostic):
    """A character stands where no word, number, string or sign of the language begins."""

    code = "MG103"
    message = "{shown} does not begin any word or sign of the language"
    example = "model m() { input x: float[4] output x ? }"


class UnexpectedText(Diagnostic):
    """A word or sign stands where the grammar does not allow it. The message names what could stand there."""

    code = "MG104"
    message = "{found} cannot stand here; expected {expected}"
    example = "model m() { input x float[4] output x }"
    way_out = ""


class TooDeep(Diagnostic):
    """Brackets, operators or bodies are nested beyond the limit that the message states."""

    code = "MG105"
    message = "{what} nested more than {limit} deep"
    help = "name a part of it in a statement of its own, and use the name"
    example = "model m() { input x: float[4] output x x = " + "(" * 101 + " }"


class NumberTooLarge(Diagnostic):
    """A number is beyond what a size or setting can be."""

    code = "MG106"
    message = "the number is too large: at most {limit}"
    help = "write a smaller number"
    example = "model m(a=99999999999999999999) { input x: float[4] output x }"


class NotAName(Diagnostic):
    """An output or a loss is given a name, or the name of a member of a family, left of the equals sign."""

    code = "MG240"
    message = "a name stands left of =, and this is an expression"
    help = "write {keyword} NAME = …, or {keyword} NAME[k] = …"
    example = "model m() { input x: float[4] output x + 1 = x }"


class TooLong(Diagnostic):
    """A spec has more words and signs, a list more members, or a name more letters than any architecture needs."""

    code = "MG115"
    message = "too many {what}: at most {limit}"
    example = "model m(sizes=[" + "1, " * 4097 + "]) { input x: float[4] output x }"
    way_out = "generate less: repeat and for write many layers in a few lines"


class NothingHere(Diagnostic):
    """The file declares no model, so there is nothing to build."""

    code = "MG107"
    message = "there is no model in this file"
    help = "begin with: model NAME(parameter=value) {{ … }}"
    example = "# only a comment"


class SeveralModels(Diagnostic):
    """A file declares one model: a command must know which to build."""

    code = "MG108"
    message = 'a second model, "{name}": a file holds one'
    help = "move it to a file of its own"
    example = "model a() { input x: float[4] output x } model b() { input x: float[4] output x }"
