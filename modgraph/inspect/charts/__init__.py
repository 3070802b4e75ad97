"""Charts as Vega-Lite: each kind is described here once, for pages, where Vega draws it, and for pictures of traces."""

from modgraph.inspect.charts.curves import curves as curves
from modgraph.inspect.charts.heat_map import heat_map as heat_map
from modgraph.inspect.charts.paths import paths as paths
from modgraph.inspect.charts.style import CONFIG as CONFIG
from modgraph.inspect.charts.style import Spec as Spec
from modgraph.inspect.page.content import Content, Curves, Heatmap, Paths


def describe(content: Content) -> Spec | None:
    """Describe a chart for a page, which puts the content's JSON in its place as data; None for what is no chart."""
    match content:
        case Heatmap():
            return heat_map(content)
        case Curves():
            return curves(content, interactive=True)
        case Paths():
            return paths(content)
        case _:
            return None


def describe_with_data(content: Heatmap | Curves | Paths) -> Spec:
    """Describe a chart with its data, for a picture."""
    spec = curves(content) if isinstance(content, Curves) else describe(content)
    assert spec is not None
    return {"data": {"values": [content.as_json()]}, **spec}
