"""Messages about declarations of what has moved."""

from __future__ import annotations

from modgraph.diagnostics import Caution, Diagnostic


class MoveInside(Diagnostic):
    """What has moved is told with the names that the whole model's graph has, so it stands in the model's own body,
    outside of repeats, branches, scans and blocks."""

    code = "MG241"
    message = '"moved" stands at the top of a model'
    help = "put it at the end of the model's body, with the whole names: moved blocks.0.old -> blocks.0.new"
    example = "model m() { input x: float[4] frozen { y = x -> linear(2) moved z -> y } output y }"


class MovedTwice(Diagnostic):
    """A name has moved to one place, and to a place one name has moved. Moves may follow each other: `moved a -> b`
    and `moved b -> c`."""

    code = "MG242"
    message = '"{name}" is moved twice'
    help = "keep one of them; of moves that follow each other write: moved a -> b, and moved b -> c"
    example = "model m() { input x: float[4] y = x -> linear(2) output y moved z -> y moved w -> y }"


class MovedNowhere(Caution):
    """The new name of something that has moved is not there. Names are those of the graph, as `modgraph show` prints
    them, or what these lie below; some parameters of a model may have a name that others lack."""

    code = "MG243"
    message = 'nothing is called "{name}" in the graph'
    help = "{suggestion}"
    example = "model m() { input x: float[4] first = x -> linear(2) output first moved start -> frist }"
