"""What kind of failure a piece of work ends in."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.assault.differential.case import Unlike


def failure_of(work: Callable[[], object]) -> str:
    """What kind of failure some work ends in; nothing if it does not fail."""
    try:
        work()
    except Unlike as error:
        ways, what = error.args
        return f"{ways}: {_without_names(what)}" if "Error: " in what else ways
    except Exception as error:
        return f"{type(error).__name__}: {_without_names(first_line(error))}"
    return ""


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def _without_names(text: str) -> str:
    """A message without what it quotes and its numbers, so that those of one cause are the same."""
    return re.sub(r"""['"`].*?['"`]|[-+.\d]+""", "…", text)
