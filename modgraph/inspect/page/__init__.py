"""Self-contained HTML pages: graphs with their specs, and sections of data. `docs/visualize.md` describes them."""

from modgraph.inspect.page.content import (
    Bars,
    Content,
    Curve,
    Curves,
    Heatmap,
    Mark,
    MarkKind,
    Pane,
    Picture,
    Section,
    Table,
    Text,
)
from modgraph.inspect.page.document import page_of

__all__ = [
    "Bars",
    "Content",
    "Curve",
    "Curves",
    "Heatmap",
    "Mark",
    "MarkKind",
    "Pane",
    "Picture",
    "Section",
    "Table",
    "Text",
    "page_of",
]
