"""Checks names that a spec gives in strings, and dotted paths of names."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

WORD = re.compile(r"\w+")


def is_word(text: str) -> bool:
    """Whether a text is a word: letters, digits and underscores, no digit first, in Unicode's normal form NFKC.

    Python normalises identifiers to NFKC, so any other name would change in PyTorch source.
    """
    return text.isidentifier() and WORD.fullmatch(text) is not None and unicodedata.is_normalized("NFKC", text)


def is_path(text: str) -> bool:
    """Whether a text is a path: words and whole numbers joined by dots, a word first, as in `blocks.8.expert`."""
    first, *below = text.split(".")
    return is_word(first) and all(is_word(part) or (part.isascii() and part.isdecimal()) for part in below)


def explain_word_problem(text: str) -> str:
    """Explain why a text is no word, as the end of a message."""
    if is_word(unicodedata.normalize("NFKC", text)):
        return "must be in Unicode's normal form NFKC"
    return "must be a word of letters, digits and underscores"


def is_key(value: Any) -> bool:
    """Whether a constant can be a key in the name of a node or weight: a whole number from 0, or a word."""
    return (type(value) is int and value >= 0) or (isinstance(value, str) and is_word(value))


def word_like(text: str) -> str:
    """Turn a text into a similar word; "" if none is similar."""
    word = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", text)).strip("_")
    return word if is_word(word) else ""
