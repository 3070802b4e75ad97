"""Portable JSON, and records whose digest detects any change. Needs only Python."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

DIGEST = "digest"


def json_text(value: Any, **layout: Any) -> str:
    """Return JSON with null for infinities and NaN, which JSON lacks."""
    return json.dumps(finite(value), allow_nan=False, **layout)


def seal(record: Mapping[str, Any]) -> bytes:
    """Return a record as JSON, a line for each key, with a digest of its content. Raises `ValueError` for infinity."""
    values = {**record, DIGEST: _digest(record)}.items()
    lines = [f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in values]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def unseal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a sealed record. Raises `ValueError` if its digest differs."""
    content = {key: value for key, value in record.items() if key != DIGEST}
    if record.get(DIGEST) != _digest(content):
        raise ValueError("it has changed")
    return content


def _digest(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def finite(value: Any) -> Any:
    """Replace infinities and NaN by null."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {key: finite(each) for key, each in value.items()}
        case list() | tuple():
            return [finite(each) for each in value]
        case _:
            return value
