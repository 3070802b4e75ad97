"""Pictures of fewer dots, where no test looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from matplotlib.figure import Figure

LOOKED_AT = ("tests.trace.test_trace", "tests.trace.test_trace_views")


@pytest.fixture(autouse=True, scope="module")
def coarse_pictures(request: pytest.FixtureRequest) -> Iterator[None]:
    plain = Figure.savefig

    def save(self: Figure, *arguments: Any, **settings: Any) -> None:
        plain(self, *arguments, **{**settings, "dpi": 20})

    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__ not in LOOKED_AT:
            patch.setattr(Figure, "savefig", save)
        yield
