"""Descriptions with blanks: a text `$name` stands for a chosen value, and within an expression for its literal.

Pages fill them in JavaScript (`chart.js`), pictures here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

BLANK = re.compile(r"\$(\w+)")


def fill(template: Any, choices: Mapping[str, Any]) -> Any:
    """Fill the blanks of a description. A chosen value is not searched for blanks."""
    match template:
        case dict():
            return {key: fill(value, choices) for key, value in template.items()}
        case list():
            return [fill(value, choices) for value in template]
        case str() if whole := BLANK.fullmatch(template):
            return choices[whole[1]]
        case str():
            return BLANK.sub(lambda blank: json.dumps(choices[blank[1]]), template)
        case _:
            return template
