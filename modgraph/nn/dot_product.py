"""Attention of queries to keys as one operation, whatever the order of axes."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor, nn

from modgraph.nn.padding import both
from modgraph.nn.windows import BEFORE, Operands, Options, Piece, Window, attend_in_windows, common, is_one

PAIRS = ("queries", "queries2"), ("keys", "keys2")
TERMS = ("bias", "mask", "sink")
PLAIN = None, "NM"  # no mask, and one of all heads


class DotProductAttention(nn.Module):
    """softmax(scores) V within a mask and a band.

    The equation has a letter for each axis of an operand, as einsum has: N queries, M keys, small letters others.
    `terms` names the operands after queries, keys and values: `bias`, `mask`, `sink`, and `queries2` with `keys2`,
    whose products are added to Q Kᵀ. `same` says that queries and keys are the same tokens, `last` that queries are
    the last of the keys. With a window, keys are read in blocks.
    """

    def __init__(
        self,
        equation: str,
        terms: tuple[str, ...] = (),
        scale: float = 1.0,
        cap: float | None = None,
        band: tuple[Piece, ...] = (),
        same: bool = False,
        window: Window | None = None,
        last: bool = False,
    ) -> None:
        super().__init__()
        given, self.result = equation.split("->")
        self.letters = dict(zip(("queries", "keys", "values", *terms), given.split(","), strict=True))
        joined = dict.fromkeys(self.letters["queries"] + self.letters["keys"])
        self.heads = "".join(each for each in joined if each in self.result and each not in "NM")
        self.own = "".join(each for each in self.letters["values"] if each not in f"{self.heads}M")
        self.options, self.window = Options(scale, cap, band, last), window
        self.skips_padding = same and band == BEFORE  # a query sees no padding, which comes after it
        self.places = {name: self._find_places(name) for name in self.letters}
        self.orders = [(0, *(1 + at for at in order)) for order, _ in self.places.values()]
        ordered = f"{self.heads}N{self.own}"
        self.back = (0, *(1 + ordered.index(each) for each in self.result if each in ordered))
        vectors = [name for name in self.letters if name not in TERMS]
        lacking = [[at for at in self.places[name][1] if at < len(self.heads)] for name in vectors]
        self.has_one_head = len(self.heads) == 1 and not any(lacking)
        of_members = [len(self.heads) - 1]  # heads of queries that share keys, which are not copied for them
        self.shares_keys = lacking == [[], of_members, of_members] and window is None
        heads, ranks = len(self.heads), [len(self.letters[name]) for name in vectors]
        has_all = heads > 0 and lacking == [[], [], []] and window is None and ranks == [heads + 2] * 3
        fits = has_all or (self.shares_keys and ranks == [heads + 2, heads + 1, heads + 1])
        self.is_plain = fits and "N" in self.result and not {*terms} - {"mask"} and self.letters.get("mask") in PLAIN
        # a query at the place of the last key sees all keys
        self.sees_all = self.is_plain and not terms and cap is None and (not band or (last and band == BEFORE))

    def forward(self, *operands: Tensor, mask: tuple[Tensor | None, ...] = ()) -> Tensor:
        """Operands have the axes of the equation behind any outer ones; `mask` has the padding mask of each."""
        if self.is_plain and not mask and self._have_batch(operands):
            return self._attend_by_head(*operands)
        given = dict(zip(self.letters, operands, strict=True))
        outer = max(x.dim() - len(self.letters[name]) for name, x in given.items())
        q, k = ([self._arrange(given[each], each, outer) for each in names if each in given] for names in PAIRS)
        v = self._arrange(given["values"], "values", outer)
        own = v.shape[outer + len(self.heads) + 1 :]
        v = v if len(own) == 1 else v.reshape(*v.shape[: v.dim() - len(own)], -1)
        terms = {name: self._arrange(given[name], name, outer) for name in TERMS if name in given}
        seen = None if "mask" not in terms else terms["mask"] != 0
        if mask and mask[1] is not None:
            valid = self._arrange(mask[1], "keys", outer)
            k, v = [x.masked_fill(~valid, 0.0) for x in k], v.masked_fill(~valid, 0.0)
            seen = seen if self.skips_padding else both(seen, valid.transpose(-1, -2))
            if self.options.last:
                new = q[0].shape[-2] if mask[0] is None else _count(self._arrange(mask[0], "queries", outer))
                terms["before"] = _count(valid) - new
        if outer == 1 and self.has_one_head:
            y = self._attend(_concat(q), _concat(k), v, seen, terms)
            return self._order(y if len(own) == 1 else y.reshape(*y.shape[:-1], *own), outer)
        lead: list[int] = [common(sizes) for sizes in zip(*(x.shape[:-2] for x in (*q, *k, v)), strict=True)]
        of_keys = [*lead[:-1], 1] if self.shares_keys and not (mask and mask[1] is not None) else lead
        queries, keys, values = (
            _join(_concat([x.expand(*sizes, -1, -1) for x in each]), outer, sizes)
            for each, sizes in ((q, lead), (k, of_keys), ([v], of_keys))
        )
        joined = {name: _join(x, outer, lead) for name, x in terms.items()}
        y = self._attend(queries, keys, values, None if seen is None else _join(seen, outer, lead), joined)
        return self._order(y.reshape(*lead, y.shape[-2], *own), outer)

    def attend_from_last(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend from one query, which has the place of the last key, where it `sees_all`."""
        of_q, of_k, of_v = self.orders
        q, k, v = q.permute(of_q), k.permute(of_k), v.permute(of_v)
        heads = q.shape[1:-2]
        if len(heads) > 1:
            q, k, v = q.flatten(1, -3), k.flatten(1, -3), v.flatten(1, -3)
        y = F.scaled_dot_product_attention(q, k, v, scale=self.options.scale, enable_gqa=self.shares_keys)
        return (y if len(heads) == 1 else torch.unflatten(y, 1, heads)).permute(self.back)

    def _have_batch(self, operands: tuple[Tensor, ...]) -> bool:
        """Whether all operands have one outer axis."""
        return all(x.dim() == 1 + len(own) for x, own in zip(operands, self.letters.values(), strict=True))

    def _attend_by_head(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend where queries have all heads, keys and values all or those that they share, and a mask none."""
        q, k, v = (
            x.permute(0, *(1 + at for at in self.places[name][0]))
            for name, x in (("queries", q), ("keys", k), ("values", v))
        )
        heads = q.shape[1:-2]
        q, k, v = (x if x.dim() == 4 else x.flatten(1, -3) if x.dim() > 4 else x.unsqueeze(1) for x in (q, k, v))
        y = self._attend(q, k, v, None if mask is None else (mask != 0).unsqueeze(1), {})
        return self._order(y if len(heads) == 1 else torch.unflatten(y, 1, heads), 1)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None, terms: Mapping[str, Tensor]) -> Tensor:
        return attend_in_windows(
            Operands(q, k, v, seen, terms.get("bias"), terms.get("sink"), terms.get("before")),
            self.options,
            self.window,
        )

    def _find_places(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Find the order of an operand's axes as heads, and either pairs or vectors, and the places of axes that it
        lacks, which get length 1."""
        letters = self.letters[name]
        own = "".join(each for each in letters if each not in f"{self.heads}NM")
        target = f"{self.heads}NM" if name in TERMS else f"{self.heads}{'N' if name in PAIRS[0] else 'M'}{own}"
        order = tuple(letters.index(each) for each in target if each in letters)
        return order, tuple(at for at, each in enumerate(target) if each not in letters)

    def _arrange(self, x: Tensor, name: str, outer: int) -> Tensor:
        """Permute an operand to outer axes, heads, and either pairs or vectors."""
        order, lacking = self.places[name]
        x = x if x.dim() == outer + len(order) else x[(None,) * (outer + len(order) - x.dim())]
        x = x if order == (*range(len(order)),) else x.permute(*range(outer), *(outer + at for at in order))
        for at in lacking:
            x = x.unsqueeze(outer + at)
        return x

    def _order(self, y: Tensor, outer: int) -> Tensor:
        """Permute a value with heads, queries and its own axes to the axes of the result."""
        letters = f"{self.heads}N{self.own}"
        if "N" not in self.result:
            y, letters = y.squeeze(outer + len(self.heads)), letters.replace("N", "")
        return y.permute(*range(outer), *(outer + letters.index(each) for each in self.result))


def _concat(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, -1)


def _count(valid: Tensor) -> Tensor:
    """Count the tokens that a mask [..., N, 1] has: [..., 1, 1]."""
    return valid.sum(-2, keepdim=True)


def _join(x: Tensor, outer: int, lead: list[int]) -> Tensor:
    """Merge the outer axes into one and the heads into another; axes that all have length 1 stay so."""
    for first, sizes in ((outer, lead[outer:]), (0, lead[:outer])):
        before, own, after = x.shape[:first], x.shape[first : first + len(sizes)], x.shape[first + len(sizes) :]
        if not sizes:
            x = x.unsqueeze(first)
        elif len(sizes) > 1 and all(map(is_one, own)):
            x = x.reshape(*before, 1, *after)
        elif len(sizes) > 1:
            x = x.expand(*before, *sizes, *after).flatten(first, first + len(sizes) - 1)
    return x
