"""Attention to all keys, and in blocks of queries to the keys of a window.

Shapes: B examples, H heads, N queries, M keys, W width, V width of values; n blocks of R queries, with K keys each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

from modgraph.nn.grouped import can_read
from modgraph.nn.padding import both

Bounds = tuple[int | None, int | None]
Piece = tuple[Bounds, Bounds, Bounds]  # of key − query, of the key's place, of the query's; None is unbounded
Window = tuple[int, int, int]  # bounds of key − query, and how many first keys are seen from anywhere
LEAST = 16  # queries of a block
BEFORE = (((None, 0), (None, None), (None, None)),)  # the band of causal attention


class Options(NamedTuple):
    """The scores are cap · tanh(scale · Q Kᵀ / cap) + bias, within the pieces of a band.

    If queries are the `last` of the keys, the band counts places from the ends of both.
    """

    scale: float = 1.0
    cap: float | None = None
    band: tuple[Piece, ...] = ()
    last: bool = False


class Operands(NamedTuple):
    """Queries [B, H, N, W], keys [B, H, M, W] and values [B, H, M, V]; what is seen, a bias and the logit of a sink
    broadcast against [B, H, N, M], as does the number of keys `before` the last ones; M − N without it."""

    q: Tensor
    k: Tensor
    v: Tensor
    seen: Tensor | None = None
    bias: Tensor | None = None
    sink: Tensor | None = None
    before: Tensor | None = None


def is_one(size: int) -> bool:
    """Whether a size is the constant 1, not that of a traced axis."""
    return isinstance(size, int) and size == 1


def common(sizes: tuple[int, ...]) -> int:
    """The size to which several broadcast."""
    return next((size for size in sizes if not is_one(size)), 1)


def attend(given: Operands, options: Options, is_causal: bool = False) -> Tensor:
    """Attention [B, H, N, V] to the keys that are seen; zero where none is."""
    q, k, v, seen, bias, sink, _ = given
    if sink is not None:
        return _multiply(_share_with_sink(_score(given, options), sink), v)
    none = None
    if seen is not None and can_read(seen) and q.shape[-2] == 1 and bool(seen.all()):
        seen = None  # a last token sees all keys, mostly
    if seen is not None:
        none = ~seen.any(-1, keepdim=True)
        seen = seen | none  # nothing has no softmax, and its gradient would be NaN
    if options.cap is not None:
        y = _multiply(_score(given._replace(seen=seen), options).softmax(-1), v)
    else:
        mask = seen if bias is None else _hide(bias, seen)
        shares = q.shape[1] != k.shape[1]  # several heads of queries share one of keys
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=is_causal, scale=options.scale, enable_gqa=shares
        )
    return y if none is None else y.masked_fill(none, 0.0)


def _score(given: Operands, options: Options) -> Tensor:
    """The scores [B, H, N, M] of all keys, very small where a query does not see one."""
    scores = _multiply(given.q, given.k.mT) * options.scale
    if options.cap is not None:
        scores = options.cap * torch.tanh(scores / options.cap)
    return _hide(scores if given.bias is None else scores + given.bias, given.seen)


def _multiply(x: Tensor, y: Tensor) -> Tensor:
    """Products of x [B, H, N, W] and y [B, G, W, M]: [B, H, N, M]. H / G heads of x share one of y."""
    if x.shape[1] == y.shape[1] or is_one(x.shape[1]):
        return x @ y
    return (x.reshape(x.shape[0], y.shape[1], -1, x.shape[-1]) @ y).reshape(*x.shape[:-1], y.shape[-1])


def _share_with_sink(scores: Tensor, sink: Tensor) -> Tensor:
    """The softmax of scores [B, H, N, M] and the logit of a sink, without the share of the sink.

    No further key is joined to the others: torch would not export that for every length.
    """
    most = torch.maximum(scores.detach().amax(-1, keepdim=True), sink.detach())
    powers = torch.exp(scores - most)
    return powers / (powers.sum(-1, keepdim=True) + torch.exp(sink - most))


def _hide(scores: Tensor, seen: Tensor | None) -> Tensor:
    return scores if seen is None else scores.masked_fill(~seen, torch.finfo(scores.dtype).min)


def attend_to_all(given: Operands, options: Options) -> Tensor:
    """Attention with the band as a mask of indices."""
    N, M = given.q.shape[-2], given.k.shape[-2]
    is_aligned = not options.last or (isinstance(N, int) and N == M)
    is_causal = (
        options.band == BEFORE and is_aligned and options.cap is None and not any(x is not None for x in given[3:])
    )
    if not options.band or is_causal or (options.last and is_one(N) and _sees_all(options.band, M)):
        return attend(given, options, is_causal)
    queries, keys = (torch.arange(x.shape[-2], device=x.device) for x in (given.q, given.k))
    places: Any = queries.unsqueeze(-1)
    if options.last:
        places = places + (M - N if given.before is None else given.before)
    return attend(given._replace(seen=both(is_in_band(options.band, places, keys), given.seen)), options)


def _sees_all(band: tuple[Piece, ...], keys: int) -> bool:
    """Whether a query at the place of the last key sees all of them."""
    return any((low is None or low <= 1 - keys) and (high is None or high >= 0) for (low, high), *_ in band)


def is_in_band(band: tuple[Piece, ...], queries: Tensor, keys: Tensor) -> Tensor:
    """Whether places of queries and keys, which broadcast, lie in one of the pieces."""
    found: Tensor | None = None
    for (low, high), *others in band:
        inside = torch.ones_like(queries == keys) if low is high is None else None
        inside = inside if low is None else keys >= queries + low
        inside = inside if high is None else both(inside, keys <= queries + high)
        for (low, high), place in zip(others, (keys, queries), strict=True):
            inside = inside if low is None else both(inside, place >= low)
            inside = inside if high is None else both(inside, place <= high)
        found = inside if found is None or inside is None else found | inside
    assert found is not None, "a band has a piece"
    return found


def attend_in_windows(given: Operands, options: Options, window: Window | None) -> Tensor:
    """Attention in blocks of queries, each to the keys of its window and to the first ones; without a window to all."""
    N, M = given.q.shape[-2], given.k.shape[-2]
    if window is None or (isinstance(M, int) and list_sizes(window)[-1] >= M):
        return attend_to_all(given, options)
    tiles = Tiles.cut(N, M, window, given.q.device)
    seen = is_in_band(options.band, tiles.queries, tiles.keys) & tiles.valid
    seen = seen.unsqueeze(0).unsqueeze(2)  # [1, n, 1, R, K]
    if given.seen is not None:
        seen = tiles.cut_pairs(given.seen) & seen
    examples = given.q.shape[0]
    bias = None if given.bias is None else tiles.cut_pairs(given.bias)
    joined = (None if x is None else x.expand(examples, *x.shape[1:]).flatten(0, 1) for x in (seen, bias))
    sink = None if given.sink is None else tiles.cut_sink(given.sink.expand(examples, *given.sink.shape[1:]))
    q, k, v = tiles.cut_queries(given.q), tiles.cut_keys(given.k), tiles.cut_keys(given.v)
    y = attend(Operands(q, k, v, *joined)._replace(sink=sink), options).transpose(1, 2)  # [B n, R, H, V]
    return y.reshape(examples, tiles.rows, *y.shape[2:])[:, :N].transpose(1, 2)


def list_sizes(window: Window) -> tuple[int, int, int, int]:
    """The queries of a block, the blocks of keys before and after its own, and the keys that it sees."""
    low, high, first = window
    size = LEAST * max(1, -(-(high - low) // (4 * LEAST)))
    before, after = max(0, -(low // size)), max(0, (size - 1 + high) // size)
    return size, before, after, first + (before + 1 + after) * size


@dataclass(frozen=True)
class Tiles:
    """Blocks of queries, each with `before` blocks of keys, its own, `after` blocks, and the `first` keys.

    `queries` [n, R, 1] and `keys` [n, 1, K] are places; `valid` is false where there is no key, or one twice.
    """

    size: int
    before: int
    after: int
    first: int
    count: int
    queries: Tensor
    keys: Tensor
    valid: Tensor

    @classmethod
    def cut(cls, N: int, M: int, window: Window, device: torch.device) -> Tiles:
        """Cut N queries, the last block with some beyond them, and M keys."""
        size, before, after, _ = list_sizes(window)
        count, first = (N + size - 1) // size, window[2]
        queries = torch.arange(count * size, device=device).view(count, size, 1)
        keys = queries[:, :1] - before * size + torch.arange((before + 1 + after) * size, device=device)
        valid = (keys >= 0) & (keys < M)
        if first:
            early = torch.arange(first, device=device).expand(count, 1, -1)
            valid = torch.cat(((early < keys[..., :1]) & (early < M), valid), -1)
            keys = torch.cat((early, keys), -1)
        return cls(size, before, after, first, count, queries, keys, valid)

    @property
    def rows(self) -> int:
        """The queries of all blocks, some beyond the last."""
        return self.count * self.size

    def cut_queries(self, x: Tensor) -> Tensor:
        """Cut queries [B, H, N, W] into [B n, H, R, W]."""
        x = F.pad(x.transpose(1, 2), (0, 0, 0, 0, 0, self.rows - x.shape[2]))
        return _split(x, 1, self.count, self.size).flatten(0, 1).transpose(1, 2)

    def cut_keys(self, x: Tensor) -> Tensor:
        """Cut keys or values [B, H, M, W] into [B n, H, K, W]."""
        x, blocks = x.transpose(1, 2), self.before + self.count + self.after
        beyond = (self.count + self.after) * self.size - x.shape[1]
        rows = _split(F.pad(x, (0, 0, 0, 0, self.before * self.size, beyond)), 1, blocks, self.size)
        parts = [rows[:, at : at + self.count] for at in range(self.before + 1 + self.after)]
        if self.first:
            early = F.pad(x, (0, 0, 0, 0, 0, self.first))[:, : self.first]
            parts.insert(0, early.unsqueeze(1).expand(-1, self.count, -1, -1, -1))
        return torch.cat(parts, 2).flatten(0, 1).transpose(1, 2)

    def cut_sink(self, x: Tensor) -> Tensor:
        """Cut the sink [B, H, N, 1] of each query, or of all, into [B n, H, R, 1]."""
        if not is_one(x.shape[2]):
            return self.cut_queries(x)
        return x.unsqueeze(1).repeat(1, self.count, 1, 1, 1).flatten(0, 1)

    def cut_pairs(self, x: Tensor) -> Tensor:
        """Cut x [B, H, N, M] into [B, n, H, R, K]; an axis of length 1 stays so."""
        M = x.shape[-1]
        if is_one(x.shape[2]):
            x = x.unsqueeze(2).expand(-1, -1, self.count, -1, -1)
        else:
            x = _split(F.pad(x, (0, 0, 0, self.rows - x.shape[2])), 2, self.count, self.size)
        if not is_one(M):
            x = x.gather(-1, self.keys.clamp(min=0).clamp(max=M - 1).expand(*x.shape[:-1], -1))
        return x.transpose(1, 2)


def _split(x: Tensor, axis: int, count: int, size: int) -> Tensor:
    """Split an axis into `count` blocks of a size."""
    found: Any = x
    result: Tensor = found.unflatten(axis, (count, size))
    return result
