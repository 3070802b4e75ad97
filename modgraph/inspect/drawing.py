"""Draws a scene as a picture (SVG): in light colours, and without signs that fold."""

from __future__ import annotations

import re

from modgraph.inspect.page.content import FITTING, DrawingOptions, Pane
from modgraph.inspect.page.document import Room, read_colours, render, text_of
from modgraph.inspect.scene import Scene
from modgraph.version import VERSION

MARGIN = 4
ROOM = (760, 2100)  # pixels of a picture whose boxes are unfolded as far as they fit


def write_svg(scene: Scene, options: DrawingOptions = FITTING, room: Room = ROOM) -> str:
    """The text of an `.svg` file."""
    picture = render(Pane(scene, options=options).as_json(), room, options, plain=True)
    width, height = (round(picture["positions"][side] + 2 * MARGIN) for side in ("width", "height"))
    style, colours = text_of("drawing.css"), read_colours()  # few viewers know colours by their names
    rules = re.sub(r"var\(--([\w-]+)\)", lambda name: colours[name[1]], style[style.index("}") + 1 :])
    place = {"left": -MARGIN, "top": -MARGIN, "width": width, "height": height}
    return text_of("picture.svg").format(version=VERSION, style=rules, drawing=picture["svg"], **place)
