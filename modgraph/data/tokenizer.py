"""Tokenizers that divide a text into pieces of words: a tokenizer.json, as published models have one, or one trained on
a text (byte-pair encoding: Sennrich et al., 2016). They need the extra `tokenizers`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Self

from modgraph.data.errors import bad_file
from modgraph.data.files import read_text
from modgraph.extras import require

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EXTRA = "tokenizers"
UNUSED = "<unused{}>"  # ids for which a published model has rows, and its tokenizer no piece
WAY_OUT = "give a tokenizer.json, as published models and the folders of runs have it"


# Byte-level tokenizers write a byte as the letter of its code where that is visible, the others as letters from 256 on.
VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
HIDDEN = [byte for byte in range(256) if byte not in VISIBLE]
BYTES = {chr(byte): byte for byte in VISIBLE} | {chr(256 + at): byte for at, byte in enumerate(HIDDEN)}


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer.json, by its text."""

    text: str

    @classmethod
    def read(cls, path: str) -> Self:
        """Read a file. Raises `ModgraphError`."""
        require(EXTRA, "a tokenizer")
        found = cls(read_text(path))
        try:
            ids = found._loaded.get_vocab().values()
        except Exception as error:  # the package raises nothing more specific
            raise bad_file(path, f"it is no tokenizer: {str(error).splitlines()[0]}", WAY_OUT) from error
        if sorted(ids) != [*range(len(ids))]:
            raise bad_file(path, f"its {len(ids)} ids are not those from 0 to {len(ids) - 1}", WAY_OUT)
        return found

    @classmethod
    def train(cls, text: str, size: int) -> Self:
        """Train byte-pair encoding on a text, of so many pieces if the text has as many, at least one for each byte.
        Raises `ModgraphError`."""
        require(EXTRA, "a tokenizer")
        return cls(_train(text, size))

    @classmethod
    def from_record(cls, record: Any) -> Self:
        """Return the tokenizer that a bundle describes. Raises `ModgraphError` if the package is missing."""
        require(EXTRA, "a tokenizer")
        return cls(json.dumps(record, ensure_ascii=False))

    def as_json(self) -> bytes:
        return self.text.encode()

    def __len__(self) -> int:
        size: int = self._loaded.get_vocab_size(with_added_tokens=True)
        return size

    def fill(self, size: int) -> Self:
        """Return the tokenizer with unused pieces up to a number of ids."""
        loaded = self._load()
        loaded.add_tokens([UNUSED.format(id_) for id_ in range(len(self), size)])
        return type(self)(loaded.to_str())

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """The text of each id, blanks included; bytes that are no whole letter give a replacement character."""
        return tuple(self._loaded.decode_batch([[id_] for id_ in range(len(self))], skip_special_tokens=False))

    @cached_property
    def bytes(self) -> tuple[bytes, ...] | None:
        """The bytes of each id in a text; None if ids do not stand for bytes. A letter may fall into several ids."""
        record = json.loads(self.text)
        if '"ByteLevel"' not in json.dumps(record.get("decoder")):
            return None
        added = {each["id"]: each["content"].encode() for each in record["added_tokens"]}
        names = map(self._loaded.id_to_token, range(len(self)))
        return tuple(added.get(id_) or bytes(BYTES[letter] for letter in name) for id_, name in enumerate(names))

    @cached_property
    def characters(self) -> tuple[int, ...] | None:
        """The number of characters of each id in a text, each at its first byte; None if ids do not stand for bytes."""
        if self.bytes is None:
            return None
        return tuple(sum(byte & 0xC0 != 0x80 for byte in each) for each in self.bytes)

    def ids_of(self, text: str) -> NDArray[np.int64]:
        """Return the ids of a text."""
        import numpy as np

        return np.array(self._loaded.encode(text, add_special_tokens=False).ids, np.int64)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some ids."""
        text: str = self._loaded.decode([*ids], skip_special_tokens=False)
        return text

    @cached_property
    def _loaded(self) -> Any:
        return self._load()

    def _load(self) -> Any:
        import tokenizers

        return tokenizers.Tokenizer.from_str(self.text)


@cache
def _train(text: str, size: int) -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    found.train_from_iterator(
        text.splitlines(keepends=True),
        trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False),
    )
    trained: str = found.to_str()
    return trained


def describe_pieces(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return how ids are made from texts, for deploying a model."""
    words = "the ids of the pieces into which the tokenizer, a tokenizer.json, divides a text"
    return {"words": words, "split": "tokenizer", "tokenizer": json.loads(tokenizer.text)}
