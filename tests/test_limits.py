"""A test that meets its limit fails by itself, wherever the signal interrupts it."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType

import pytest


def give_frame() -> FrameType:
    """A frame whose code has instructions that no line says: those that leave the handler."""
    try:
        raise ValueError
    except ValueError as error:
        assert error
        return sys._getframe()


def test_a_traceback_without_a_line_is_reported() -> None:
    frame = give_frame()
    at = [line for line, *_ in frame.f_code.co_positions()].index(None)
    place = TracebackType(None, frame, 2 * at, -1)
    assert place.tb_lineno is None, "as where a signal interrupts that instruction"
    found = pytest.ExceptionInfo.from_exception(TimeoutError("300 s").with_traceback(place))
    assert all("300 s" in str(found.getrepr(style=style)) for style in ("long", "short", "native"))
