"""Converts texts to the ids of a model as in its training: by its tokenizer, or splits them and looks words up."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from modgraph.data.text import WORD_OR_SIGN
from modgraph.data.tokenizer import Tokenizer
from modgraph.data.vocabulary import UNKNOWN


def encode_texts(texts: Sequence[str], known: Sequence[str], how: Mapping[str, Any]) -> list[list[int]]:
    """Return the ids of each text."""
    if how.get("split") == "tokenizer":
        tokenizer = Tokenizer.from_record(how.get("tokenizer"))
        return [tokenizer.ids_of(text).tolist() for text in texts]
    return [ids_of(split_words(text, how), known, how) for text in texts]


def open_decoders(count: int, known: Sequence[str], how: Mapping[str, Any]) -> list[Callable[[int], str]]:
    """Return a function for each of some texts, which gives the text that an id adds to those before. A letter that
    falls into several pieces comes with the last of them."""
    pieces = Tokenizer.from_record(how.get("tokenizer")).bytes if how.get("split") == "tokenizer" else None
    if pieces is None:
        return [known.__getitem__] * count
    return [_open_decoder(pieces) for _ in range(count)]


def _open_decoder(pieces: Sequence[bytes]) -> Callable[[int], str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return lambda id_: decoder.decode(pieces[id_])


def split_words(text: str, how: Mapping[str, Any]) -> list[str]:
    """Split a text into words, at blanks only or with signs apart."""
    pieces = (text.lower() if how.get("lower") else text).split()
    whole = (how.get("end"), how.get("unknown", UNKNOWN))
    if how.get("split") == "blanks":
        return pieces
    return [word for piece in pieces for word in ([piece] if piece in whole else WORD_OR_SIGN.findall(piece))]


def ids_of(words: Sequence[str], known: Sequence[str], how: Mapping[str, Any]) -> list[int]:
    """Look up the id of each word, or of its last letters; unknown words have the id of `<unk>`."""
    letters = how.get("letters")
    ids = {word: at for at, word in enumerate(known)}
    other = ids[how.get("unknown", UNKNOWN)]
    return [ids.get(word[-letters:] if letters else word, other) for word in words]
