"""JSON that everybody can read, and records that notice a change of a single bit. Needs nothing but Python."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

DIGEST = "digest"


def json_text(value: Any, **layout: Any) -> str:
    """JSON in which a number that is infinite or none at all, which JSON does not have, is null."""
    return json.dumps(finite(value), allow_nan=False, **layout)


def sealed(record: Mapping[str, Any]) -> bytes:
    """A record as JSON, with a digest over all that it says. Raises `ValueError` for infinity."""
    return (json.dumps({**record, DIGEST: _digest(record)}, indent=2, allow_nan=False) + "\n").encode()


def unsealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a sealed record says. Raises `ValueError` if it is not what was written."""
    content = {key: value for key, value in record.items() if key != DIGEST}
    if record.get(DIGEST) != _digest(content):
        raise ValueError("it is not what was written")
    return content


def _digest(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def finite(value: Any) -> Any:
    """The same with null for every number that JSON does not have."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {key: finite(each) for key, each in value.items()}
        case list() | tuple():
            return [finite(each) for each in value]
        case _:
            return value
