"""One browser for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.inspect import browser as chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from chromium.started()
