"""Attention as one op, which passes make of the sums that a spec writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any

from modgraph.declare import Operand, Signature, own_module, setting, sizes
from modgraph.declare.indexing import Indexing, Reading, Use, follow_equation, place_at
from modgraph.ops.op import Op
from modgraph.types import Axes, Axis, Misfit, Shape, TensorType, may_meet, meet_axes, require_distinct

Bounds = tuple[int | None, int | None]
Piece = tuple[Bounds, Bounds, Bounds]  # of key − query, of the key's place, of the query's; None is unbounded
OPEN: Bounds = (None, None)
WHAT = ("", "key ", "query ")
BOUND = re.compile(r"(key |query |)(-?\d+)?\.\.(-?\d+)?")
TERMS = ("bias", "mask", "sink", "queries2", "keys2")
EQUATION = "axes of the operands and of the result: N queries, M keys, small letters others"
BAND = 'ranges of visible keys: "-127..0" of a key\'s place less the query\'s, "key ..3" of its place; all without any'


def format_piece(piece: Piece) -> str:
    """Format a piece of a band: `-127..0`, `..0 and key ..3`."""
    parts = ((what, *map(_format_bound, bounds)) for what, bounds in zip(WHAT, piece, strict=True) if bounds != OPEN)
    return " and ".join(f"{what}{low}..{high}" for what, low, high in parts) or ".."


def _format_bound(bound: int | None) -> str:
    return "" if bound is None else str(bound)


def parse_piece(text: str) -> Piece:
    """Read what `format_piece` writes. Raises `Misfit`."""
    found = dict.fromkeys(WHAT, OPEN)
    for part in text.split(" and "):
        match = BOUND.fullmatch(part)
        if match is None:
            raise Misfit(f'"{part}" is no range of keys', 'for example: band=["-127..0"] or band=["..0 and key ..3"]')
        low, high = (None if each is None else int(each) for each in match.groups()[1:])
        found[match[1]] = low, high
    return found[""], found["key "], found["query "]


class DotProductAttention(
    Op, name="dot_product_attention", synonyms="sdpa scaled_dot_product_attention flash_attention"
):
    """Σ_m softmax_m(cap · tanh(scale · Σ_d q_nd k_md / cap) + bias_nm) v_m, for each head.

    The compiler makes this op of attention that is written as scores, softmax and sum. A `mask` hides keys where it
    is zero, a `band` those outside of some ranges; a query without any key gives zeros. A `sink` is a logit that takes
    part in the softmax and has no value. `queries2` and `keys2` add their products to those of queries and keys. With
    `blocks`, keys of a narrow band are read in blocks.
    """

    example = (
        "input q: float[5, 6] input k: float[7, 6] input v: float[7, 4] y = (q, k, v) -> dot_product_attention output y"
    )
    operands = tuple(Operand(name, "...") for name in ("queries", "keys", "values", *TERMS))
    module = own_module(
        "equation", terms="terms", scale="scale", cap="cap", band="pieces", same="same", window="window", last="last"
    )
    masks = "M"
    masks_each = True
    nondifferentiable = ("mask",)
    broadcasts = True

    equation: str = setting("Nd,Md,Me->Ne", doc=EQUATION)
    terms: tuple[str, ...] = setting((), choices=TERMS, doc="operands after the third, in order")
    scale: float = setting(1.0, doc="factor of the products")
    cap: float | None = setting(None, doc="bound that tanh sets to scores; none if not given")
    band: tuple[str, ...] = setting((), doc=BAND)
    blocks: bool = setting(False, doc="read keys in blocks, as far as the band reaches")
    last: bool = setting(False, doc="queries are the last of the keys: the band counts places from the ends of both")

    def slots_of(self, count: int) -> tuple[str, ...]:
        return ("queries", "keys", "values", *self.terms)

    def resolve(self, axes: Axes, found: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        slots = self.slots_of(len(found))
        given, _, result = self.equation.partition("->")
        letters = given.split(",")
        if not len(slots) == len(letters) == len(found) or len({*slots}) < len(slots):
            raise Misfit(f"it takes {', '.join(slots)}, and its equation has {len(letters)} operands, not {len(found)}")
        bound = self._bind_letters(letters, found)
        self._check_letters(dict(zip(slots, letters, strict=True)), result)
        axes.bound |= bound
        axes.bound["pieces"] = pieces = tuple(map(parse_piece, self.band))
        axes.bound["window"] = find_window(pieces) if self.blocks else None
        if self.blocks and axes.bound["window"] is None:
            raise Misfit("its band has no window to cut into blocks", 'for example: band=["-127..0"]')
        if self.last and (self.blocks or any(piece[1:] != (OPEN, OPEN) for piece in pieces)):
            raise Misfit("places that count from the ends have no blocks, and no bounds of their own", "leave out last")
        axes.bound["same"] = "N" in bound and _is_same(bound["N"], bound["M"])
        axes.bound |= self._group_axes(letters, result, bound)
        return (TensorType("float", require_distinct(tuple(bound[each] for each in result))),)

    def _group_axes(self, letters: list[str], result: str, bound: Mapping[str, Axis]) -> dict[str, Shape]:
        """Group axes for `macs`."""
        scored = {each for own, slot in zip(letters, self.slots_of(0), strict=True) if slot != "values" for each in own}
        groups = {
            "heads": [each for each in result if each in scored and each != "N"],
            "rows": [each for each in result if each == "N"],
            "widths": sorted(scored - {*result, "M"}),
            "own": [each for each in result if each not in scored],
        }
        return {name: tuple(bound[each] for each in group) for name, group in groups.items()}

    def _bind_letters(self, letters: list[str], found: tuple[TensorType, ...]) -> dict[str, Axis]:
        bound: dict[str, Axis] = {}
        for at, (type_, own) in enumerate(zip(found, letters, strict=True)):
            if type_.dtype != "float" or type_.per == "batch" or len(type_.shape) != len(own) or len({*own}) < len(own):
                raise Misfit(f'operand {at + 1} has the axes "{own}", each once, and is a float, not {type_}', "", at)
            for letter, axis in zip(own, type_.shape, strict=True):
                if not may_meet(bound.setdefault(letter, axis), axis):
                    raise Misfit(f"axis {letter} of operand {at + 1} is {axis}, but {bound[letter]} elsewhere", "", at)
                bound[letter] = meet_axes(bound[letter], axis)
        return bound

    def _check_letters(self, letters: dict[str, str], result: str) -> None:
        queries, keys, values = ({*letters[name]} for name in ("queries", "keys", "values"))
        heads = ((queries | keys) & {*result}) - {"N", "M"}
        pairs = [(queries, keys)]
        pairs += [({*letters["queries2"]}, {*letters["keys2"]})] if "queries2" in letters and "keys2" in letters else []
        summed = all(len((one & other) - heads - {"N", "M"}) == 1 for one, other in pairs)
        known = {*result} == heads | (values - {"M"}) | ({"N"} & queries)
        own = all(one <= heads | other | {"N"} and other <= heads | one | {"M"} for one, other in pairs)
        terms = all({*letters[name]} <= heads | {"N", "M"} for name in ("bias", "mask", "sink") if name in letters)
        placed = "M" in keys & values and "M" not in queries and "N" not in keys | values
        if not (summed and known and own and terms and placed and ("queries2" in letters) == ("keys2" in letters)):
            reason = f'"{self.equation}" is no equation of attention'
            raise Misfit(reason, "queries and keys share one axis that the result lacks: Nhd,Mhd,Mhe->Nhe")

    def list_masked_axes(self, signature: Signature) -> tuple[Axis, ...]:
        queries = [signature.axes["N"]] if self.last and "N" in self.equation else []
        return (*queries, *super().list_masked_axes(signature))

    def indexing(self, use: Use) -> Indexing:
        """Keys within the band, as far as it depends on the place of the query; the mask hides others."""
        given, _, result = self.equation.partition("->")
        letters, offsets = given.split(","), [piece[0] for piece in use.signature.axes["pieces"]] or [OPEN]
        low, high = _widest(min, [each[0] for each in offsets]), _widest(max, [each[1] for each in offsets])
        known = dict(zip(given.replace(",", ""), (axis for shape in use.shapes for axis in shape), strict=True))
        is_placed = "N" in result and not self.last
        within = {"M": place_at(result.index("N") - len(result), low, high)} if is_placed else {}
        places = follow_equation(letters, result, known, within)
        masks = [slot == "mask" for slot in self.slots_of(len(letters))]
        return (tuple(Reading(*each) for each in zip(range(len(letters)), places, masks, strict=True)),)

    def macs(self, heads: Any, rows: Any, M: int, widths: Any, own: Any, window: Any) -> int:
        keys = M if window is None else min(M, window[1] - window[0] + 1 + window[2])
        return prod(sizes((*heads, *rows))) * keys * (sum(sizes(widths)) + prod(sizes(own)))


def _widest(widest: Any, bounds: list[int | None]) -> int | None:
    known = [each for each in bounds if each is not None]
    return widest(known) if len(known) == len(bounds) else None


def find_window(pieces: tuple[Piece, ...]) -> tuple[int, int, int] | None:
    """Find the bounds of key − query of a band's narrow pieces, and how many first keys the other pieces have; None if
    a piece is neither narrow nor of first keys."""
    narrow = [(low, high) for (low, high), _, _ in pieces if low is not None and high is not None]
    others = [key[1] for offset, key, _ in pieces if None in offset]
    if not narrow or any(each is None for each in others):
        return None
    first = max((each + 1 for each in others if each is not None), default=0)
    return min(low for low, _ in narrow), max(high for _, high in narrow), max(0, first)


def _is_same(queries: Axis, keys: Axis) -> bool:
    """Whether queries and keys are one axis, read twice, so that examples have equal lengths along both."""
    return queries.is_padded and queries.lengths == keys.lengths
