"""Attention as one op: a softmax for each query of each head, over the keys that it sees."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.reference.along_axis import softmax_of
from tests.reference.call import Call, op
from tests.reference.values import Array

At = Mapping[str, int]  # a place along each axis, by letter


@op("dot_product_attention")
def dot_product_attention(call: Call, *operands: Array) -> Array:
    given, result = call.setting("equation", "Nd,Md,Me->Ne").split("->")
    slots = ["queries", "keys", "values", *call.setting("terms", [])]
    letters = dict(zip(slots, given.split(","), strict=True))
    values = dict(zip(slots, operands, strict=True))
    sizes: dict[str, int] = {}
    for slot in slots:
        sizes.update(zip(letters[slot], values[slot].shape, strict=True))

    def read(slot: str, at: At) -> Any:
        """The part of an operand at given places: a vector along its own axis, or a number."""
        return values[slot][tuple(at.get(each, slice(None)) for each in letters[slot])]

    def score(at: At) -> float:
        found = call.setting("scale", 1.0) * (read("queries", at) @ read("keys", at))
        if "queries2" in slots:
            found += call.setting("scale", 1.0) * (read("queries2", at) @ read("keys2", at))
        if call.setting("cap") is not None:
            found = call.settings["cap"] * np.tanh(found / call.settings["cap"])
        return float(found + (read("bias", at) if "bias" in slots else 0.0))

    before = sizes["M"] - sizes.get("N", 1) if call.setting("last", False) else 0
    rows = [each for each in dict.fromkeys(letters["queries"] + letters["keys"]) if each in result]
    own = [each for each in result if each not in rows]
    found = np.zeros([sizes[each] for each in (*rows, *own)])
    for place in np.ndindex(*(sizes[each] for each in rows)):
        at = dict(zip(rows, place, strict=True))
        keys = [{**at, "M": m} for m in range(sizes["M"]) if is_in_band(call, before + at.get("N", 0), m)]
        keys = [each for each in keys if "mask" not in slots or read("mask", each) != 0]
        scores = [score(each) for each in keys] + ([float(read("sink", at))] if "sink" in slots else [])
        for share, each in zip(softmax_of(np.array(scores)) if scores else [], keys, strict=False):
            value = read("values", each)
            order = [each for each in letters["values"] if each in own]
            found[place] += share * np.transpose(value, [order.index(each) for each in own])
    return np.transpose(found, [[*rows, *own].index(each) for each in result])


def is_in_band(call: Call, query: int, key: int) -> bool:
    places = {"": key - query, "key ": key, "query ": query}
    pieces = [re.findall(r"(key |query |)(-?\d*)\.\.(-?\d*)", each) for each in call.setting("band", [])]
    holds = [
        all(
            (not low or places[what] >= int(low)) and (not high or places[what] <= int(high))
            for what, low, high in each
        )
        for each in pieces
    ]
    return any(holds) or not pieces
