"""Messages of pages and pictures."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class TooFewAddresses(Diagnostic, code="MG142"):
    """V8, which lays out pages and pictures, reserves a terabyte of addresses and uses few of them. A bound on the
    addresses of a process (`ulimit -v`) stops it."""

    message = "the layout of pages and pictures needs a terabyte of addresses; this process is bounded to {most} GiB"
    help = "lift the bound (ulimit -v unlimited), or draw what others lay out: a file that ends in .dot or .mmd"


class UnknownDrawingSuffix(Diagnostic, code="MG140"):
    """`visualize -o` writes what the suffix of the file says: a page (.html), a picture (.svg), a graph for graphviz
    (.dot) or for Mermaid (.mmd)."""

    message = 'there is no drawing of the kind of "{path}"'
    help = "give a file that ends in .html, .svg, .dot or .mmd"
