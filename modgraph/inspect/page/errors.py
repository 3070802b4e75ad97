"""Messages of pages and pictures."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class TooFewAddresses(Diagnostic, code="MG142"):
    """V8, which lays out pages and pictures, reserves a terabyte of addresses and uses few of them. A limit on the
    addresses of a process (`ulimit -v`) stops it."""

    message = "the layout needs a terabyte of addresses, but this process may use {most} GiB"
    help = "lift the limit, ulimit -v unlimited, or write a file for another program: -o graph.dot, or .mmd"


class BadDrawingOption(Diagnostic, code="MG950"):
    """A drawing has a depth (boxes are unfolded so many levels deep), a direction, and can be without losses, shapes or
    numbers of parameters."""

    message = "the {option} of a drawing cannot be {value}"
    help = "use {allowed}"


class MeaninglessDrawingOption(Diagnostic, code="MG951"):
    """Graphs for graphviz and Mermaid do not say how many parameters a box has; Mermaid has shapes at edges alone."""

    message = 'cannot leave out {what} in "{path}": its format never has them'
    help = "drop the option, or draw a picture (.svg) or a page (.html)"


class UnknownDrawingSuffix(Diagnostic, code="MG140"):
    """The suffix of `visualize -o` chooses a page (.html), a picture (.svg), a graph for graphviz (.dot) or for Mermaid
    (.mmd)."""

    message = 'cannot draw to "{path}": unknown suffix'
    help = "use .html, .svg, .dot or .mmd"
