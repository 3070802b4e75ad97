"""All single damages of a file's bytes, in parts."""

from __future__ import annotations

from collections.abc import Iterator

PARTS = 100


def damaged(content: bytes, part: int) -> Iterator[tuple[str, bytes]]:
    """A part of all: one bit is another, the end is missing, something stands behind it."""
    yield from (("flipped", flipped(content, bit)) for bit in every(8 * len(content), part))
    yield from (("cut off", content[:length]) for length in every(len(content), part))
    yield from (("appended", content + bytes([byte])) for byte in every(256, part))
    yield from (("appended", content + content[-length:]) for length in every(len(content) + 1, part) if length)


def flipped(content: bytes, bit: int) -> bytes:
    byte, place = divmod(bit, 8)
    return content[:byte] + bytes([content[byte] ^ 1 << place]) + content[byte + 1 :]


def every(count: int, part: int) -> range:
    """A part of the places there are."""
    return range(part, count, PARTS)
