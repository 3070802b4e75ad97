"""Small programs for what the vocabulary's examples do not show: settings together, padding, scans, states."""

from __future__ import annotations

HEAD = """input x: float[time, 8] input m: float[place, 8] input e: float[place, 6] input k: float[place]
  input xo: float[3, time, 8] input mo: float[3, place, 8] pool p[3] = linear(8) -> gelu"""
ATTENTION = [
    "(x, m) -> attention(2)",
    "(x, m, k) -> attention(2)",
    "(x, m, k > 0) -> attention(2, causal=true)",
    "(x, e) -> attention(4, kv_heads=2)",
    "(x, e) -> attention(4, kv_heads=2, head_width=6, rotary=100.0, bias=false, out_bias=false)",
    "x -> attention(4, kv_heads=1, qk_norm=true, rotary=10.0, causal=true)",
    "x -> attention(2, relative=8)",
    "(x, m) -> attention(2, relative=6, causal=true, head_width=3)",
    "(x, m, ((x, m) -> contract) > 0) -> attention(2)",
    "(xo, mo) -> attention(2)",
]
HEADS = 'unmerge([2, 4], into=["head", ""])'
ATTENTION += [
    f"(x -> {HEADS}, m -> {HEADS}, m{rest}) -> dot_product_attention(equation={settings})"
    for rest, settings in (
        ("", '"Nhd,Mhd,Me->Nhe", scale=0.3'),
        (f" -> {HEADS}, k", '"Nhd,Mhd,Mhe,M->hNe", terms=["mask"], cap=2.0'),
        (", x -> linear(2), (x, m) -> contract", '"Nhd,Mhd,Me,Nh,NM->ehN", terms=["sink", "bias"], band=["-1..2"]'),
        (", x, m", '"Nhd,Mhd,Me,Nc,Mc->Nhe", terms=["queries2", "keys2"], band=["-1..1", "key ..0"], blocks=true'),
        ("", '"Nhd,Mhd,Me->Nhe", band=["-1..0"], last=true'),
        (
            ", m -> mean(axis=-1), x -> linear(2)",
            '"Nhd,Mhd,Me,M,Nh->hNe", terms=["mask", "sink"], band=["..0"], last=true',
        ),
    )
]
AMONG = [
    '(xo -> linear(2), (x -> linear(2)) > 0) -> masked_softmax(axis="time")',
    '((x, m) -> contract, k > 0, x -> mean(axis=-1)) -> masked_softmax(axis="place")',
    '(mo -> sum(axis=-1) -> transpose, k > 0, mo -> mean(axis=-1) -> mean(axis="place")) -> masked_softmax(axis=-2)',
]
TURNED = [
    '(xo, x -> mean(axis=-1)) -> rotary(10.0, scaled=3, trained=40, cycles=[0.5, 6], fade="logarithmic")',
    '(xo -> transpose("time", -3, -1), xo -> mean(axis=-1)) -> rotary(100.0, partial=0.5, axis="time")',
    '(x, minimum(x -> positions(axis="time"), 2)) -> rotary',
]
ROUTES = [
    "x -> p by (x -> linear(p) -> softmax) over time",
    "x by (x -> linear(3)) over time",
    "x -> linear(8) by (x -> linear(5)) over time",
    "xo -> p by (xo -> linear(p)) over time",
    "xo by (xo -> linear(1)) over -3",
    "(x -> p) -> p by (x -> linear(p))",
    "(x -> p) -> p by (x -> linear(p)) over time",
    "x -> p by ((x -> linear(p)) -> above(0.0))",
    'xo -> p by ((xo -> linear(p)) -> top_k(2, axis="time"))',
    "x -> p by ((x -> linear(p) -> softmax, x -> linear(p) -> top_k(2)) -> straight_through)",
    "x -> p by ((x -> linear(p) -> softmax, x -> linear(p) -> draw) -> straight_through)",
    "x -> p by ((x -> linear(p), (x -> linear(p)) -> above) -> masked_softmax)",
    'x -> p by (x -> linear(6) -> unmerge([2, 3], into=["slot", "p"]))',
    'x by (x -> linear(1) -> top_k(2, axis="time") -> dispatch(2, axis="time", into="slot")) over time',
    "m by ((x, m) -> contract) over place",
    "(x -> new_axis(p, at=-2)) -> p by (x -> linear(p))",
]
AXES = [
    '(x -> mean, x) -> expand("time")',
    "where((x -> sum(axis=-1)) > 0, x, 0.1)",
    '(x, xo -> mean(axis=-1)) -> contract(axis="time")',
    'x -> sort_order(axis="time", descending=true)',
    '(x -> linear(p)) -> kth_largest(2, axis="time")',
    "xo -> lstm(3, reverse=true, bias=false) -> last",
    "(x -> unmerge([2, 4]), 3.0 * x -> unmerge([2, 4])) -> concat -> transpose -> flatten(2)",
    'x -> gru(3, bias=false) -> cumulative_sum(axis="time")',
]
TWICE = [  # a second reading of an axis
    'k = x -> rename(time="key") s = (x -> linear(4), k -> linear(4)) -> contract y = k by (s -> softmax) over key',
    'y = (x, x -> rename(time="key") -> tanh) -> contract -> rename(time="key", key="time") -> cumulative_sum',
    'y = (pairs, x -> rename(time="key")) -> contract(axis="key")',
    'u = x -> p -> rename(time="key") y = (pairs, u -> mean) -> contract(axis="key") -> linear(3)',
    "scan pairs as row with h: float[1] { h = h + (row -> max(axis=-1) -> new_axis(1)) yield row * h } as y",
    'y = (pairs, pairs > 0) -> masked_softmax(axis="key") -> sum(axis="time")',
    'k = x -> rename(time="key") y = (x * k -> mean(axis=-1)) * (pairs -> transpose("key", "time")) / (1 + xo * xo)',
    'i = x -> positions(axis="time") y = where(i >= (i -> rename(time="key")), pairs, -1) * x',
    'y = (x -> p) ** 2 - (m -> positions(axis="place")) + (x -> p -> transpose(p, "time") -> mean)',
    'y = where((pairs -> transpose("time", "key")) > 0, k, x -> rename(time="key"))',
]
IN_SCANS = [
    "h = h + (v -> p) yield h -> mean(axis=p)",
    "m = v -> batch_mean([]) h = tanh(h + (v -> p) - m) yield h -> mean(axis=p)",
    "s = v -> linear(p) c = (s, s -> top_k(1)) -> within_capacity(0.5) h = h + (v -> p by (c * s)) yield h -> last",
    "g = (h -> other, v) -> contract -> softmax h = 0.5 * h + (h -> p by g over p) yield g",
    'h = h + (x -> p -> mean(axis="time")) * v yield h -> max(axis=p)',
    "h = (h -> attention(2)) -> rms_norm yield (h, v) -> contract",
]
SCAN = """model m() {{ input x: float[time, 8] pool p[3] = linear(8) pool other[p] = linear(8)
  scan x as v with h: float[p, 8] {{ {} }} as a output a output b = a -> last }}"""
UNTIL = [  # loops that end by a value
    """scan 0..5 as n with h: float[time, 8] = x, total: float[time], all: float[time, 8] {
      h = h + (h -> p by ((h -> linear(p) -> softmax) * (h -> linear(p) -> top_k(1)))) q = h -> linear(1) -> sigmoid
      total = total + (q -> sum(axis=-1)) all = all + (n + 1) * (1 - total) * h yield (all, total, n * h)
    } until total > 0.9 as y, t, last output t output last""",
    """scan 0..6 as n with h: float[time, 8] = x, rounds: float { h = (h -> attention(2)) -> rms_norm
      rounds = rounds + (h -> mean -> abs -> sum(axis=-1)) yield (h, rounds) } until rounds > 0.7 as y, r output r""",
    """scan x as v with h: float[8] { h = (v, h) -> concat -> linear(8) -> tanh
      yield (h, v) } until (h -> mean(axis=-1)) > 0.1 as y, word output word""",
    """router r = noisy_top_k(1, noise=false) scan x as v with s: float[8] {
      scan 0..4 as n with h: float[8] = s, total: float { h = tanh(v + (n == 0) * (h -> p by r))
        total = total + (h -> max(axis=-1) -> sigmoid) yield (h, total) } until total >= 1.2 as q, t
      s = q yield (s, t) } as y, all output all output gates = r.gates""",
    """scan 2..5 as n with h: float[p, 8] { h = h + (x -> mean(axis="time") -> p) * (0.4 * n)
      g = h -> sum(axis=-1) -> softmax yield h } until (h -> max(axis=-1)) > 1.0 as y""",
    "scan 0..3 as n with h: float[time, 8] = x { h = h -> linear(8) -> tanh yield h -> mean } as y",
]
ROUTERS = [
    'agreement(2, bias=true, update="normalised", residual=true)',
    "agreement(0)",
    'categorical(slots=2, combine="concat")',
    "categorical(slots=2, dedupe=true)",
    'fixed(slots=2, combine="concat")',
    'noisy_top_k(2, softmax="before_top_k", noise=false)',
    'linear(k=2, load="kth_of_others", noise=0.5, capacity=0.5, priority="first_choice")',
    'linear(k=1, load="code", noise=0.5, capacity=1.0)',
    "cosine(k=2, width=3)",
    "truncated_kernel(1.0)",
]
LOSSES = [
    "mse(x, t, missing=true)",
    'gaussian(x, t, variance=0.3, reduce="sum")',
    "gaussian(x, t, variance=0.3, missing=true)",
    "0.5 * cross_entropy(x, c, missing=true, class_weights=[1, 2, 3, 4])",
    "cross_entropy(x, c, ignore=2, missing=true)",
    'cross_entropy(x, c, since=2, reduce="sum")',
    "entropy(x) ** 2",
]
ROUTED = """model m() {{ input x: float[time, 2, 8] pool p[3] = linear(8) -> tanh router r = {}
  y = x -> p by r output y output z = r.gates loss importance(r) loss importance(r, over="example") }}"""
LOST = "model m() {{ input x: float[time, 4] target t: float[time, 4] target c: class[time, 4] output x loss {} }}"
MIXED = [
    """model m() { input words: token[time, 9] input x: float[time, 6] pool p[3] = linear(6)
      constant table: token[9, 3] = [0, 2, 1, 1, 2, 0, 0, 1, 2] weight w: float[h=2, 9, 6] = normal(1.0)
      before = words -> shift(1, axis=-1) pair = (words, (31 * words + before) % 9) -> stack(axis="h")
      rows = (w, pair) -> lookup best = rows -> top_k_indices(2, into="slot") kept = (rows, best) -> lookup
      y = x -> p by ((table, words) -> lookup -> one_hot(p)) z = (y, w -> select(0, axis=h)) -> contract
      output z output kept output best output same = where(words == before // 2, kept -> sum(axis="slot"), 0) }""",
    """model m() { input x: float[time, 6] input m: float[time, 4, 2, 3] weight b: float[7] = normal(1.0)
      output bins = (b, 3 * x + 2 -> to_ids(7)) -> lookup output some = (m, x -> to_ids(4)) -> lookup
      scan x as v with h: float[6] { at = v + h -> top_k_indices(2) g = (h + v, at) -> lookup -> sum(axis=-1)
        h = 0.5 * h + g * (v -> to_ids(2) -> one_hot -> sum(axis=-2) -> max(axis=-1)) yield (h, at) } as hs, ats
      output hs output ats }""",
    """model m() { input x: float[time, 4] state s: float[4] = normal(1.0)
      frozen { state f: float[4] = ones next f = f * 2 }
      next s = 0.9 * s + 0.1 * (x -> batch_mean) y = x + s + f output y }""",
    """model m() { input x: float[6] state recent: float[6, 2] = zeros next recent = (recent, x) -> keep_recent
      y = x + (recent -> mean(axis=-1)) output y }""",
    """model m() { input x: float[time, 6] pool p[3] = linear(6) state b: float[p] = normal(1.0)
      scan x as v with h: float[6] {
        s = v -> linear(p) c = s + b -> top_k(1) h = tanh(h + (v -> p by (c * s))) yield (h, c)
      } as hs, cs
      next b = b + 0.1 * (cs -> batch_mean("time")) output hs }""",
    """model m() { input x: float[time, other, 6] y = x -> attention(2) -> mean(axis="time") -> max(axis="other")
      output y output z = x -> linear(4) -> transpose("other", "time") -> gru(3) -> last(axis="time") }""",
    """model m() { input x: token[time, 9] target y: class[time, 3] h = x -> embedding(4) -> position(length=6)
      pool p = [linear(4), linear(6) -> relu -> linear(4), identity]
      s[0] = h -> p by (h -> linear(p) -> softmax) s[1] = h all = s -> stack z = all -> mean(axis="s") -> linear(3)
      loss cross_entropy(z, y) output z output all }""",
    """block g(w) { input x: float[d] input h: float[w] z, r = (x, h) -> concat -> linear(2 * w) -> sigmoid -> split(2)
      output n = z * h + (1 - z) * ((x, r * h) -> concat -> linear(w) -> tanh) output c = r }
    model m() { input words: float[time, 6] pool cell[4] = g(5)
      scan words as x with h: float[cell, 5] {
        s = (x, h -> mean(axis=cell)) -> concat -> linear(cell) a = (s, s -> top_k(2)) -> masked_softmax
        n, c = (x, h) -> cell h = h + a * (n - h) yield (h -> mean(axis=cell), c -> sum(axis=cell))
      } as states, cs output states output cs }""",
    """block g(w) { input x: float[d] input h: float[w] output n = (x, h) -> concat -> linear(w) -> tanh output c = x }
    model m() { input a: float[time, 6] input b: float[time, 5] pool cell[4] = g(5)
      router r = noisy_top_k(2, noise=false) n, c = (a, b) -> cell by r output n output c }""",
    """block enc(h) { input x: float[time, w] y = x -> layer_norm -> lstm(h) output y }
    model m() { input x: float[time, 10] pool cell[3] = enc(5) u = x -> cell v = u -> transpose("time", "cell")
      output u output v output w = v -> select(0, axis=cell) -> last }""",
    """model m() { input image: float[3, 8, 8] pool p[3] = conv(4, padding="same", kernel=2) -> group_norm(2)
      router r = categorical(slots=2, combine="concat", controller="conv", channels=3) y = image -> p by r
      output y output z = image -> p by r -> max_pool(3, stride=2) -> patch_embed(1, 5) -> class_token }""",
    """model m() { input x: float[time, 6] weight w: float[2, 6] = normal(1.0)
      constant c: float[2, 3] = [[1, 2, 3], [4, 5, 6]] y = (x, w) -> contract u = (y -> linear(3), c) -> contract
      v = w -> exp -> mean output u output v output k = x * v }""",
    """model m() { input x: float[time, 3] input z: float[3]
      scan x as v with h: float[3] = z, g: float[3] { h = h * 0.5 + v g = g + h yield (h, g) } as a, b
      output a output b }""",
    """model m() { input x: float[5, time, 3]
      scan x as v with h: float[3] { h = h * 0.5 + (v -> mean) yield (h, v) } as a, b output a output b }""",
]
PROGRAMS = [
    *(f"model m() {{ {HEAD} y = {use} output y }}" for use in (*ATTENTION, *AMONG, *TURNED, *ROUTES, *AXES)),
    *(f"model m() {{ {HEAD} input pairs: float[time, key=time] {use} output y }}" for use in TWICE),
    *map(SCAN.format, IN_SCANS),
    *(f"model m() {{ {HEAD} {each} output y }}" for each in UNTIL),
    *map(ROUTED.format, ROUTERS),
    *map(LOST.format, LOSSES),
    *MIXED,
    "model m() { input x: float[time, 3, 4, 4] module b = batch_norm y = x -> b z = 2 * x -> b output y output z }",
    'model m() { input x: float[5, 3, 4, 4] pool p[2] = conv(3, padding="same") -> batch_norm y = x -> p output y }',
    "model m() { input x: float[5, 3, 4, 4] pool p[2] = conv(3, kernel=2) -> batch_norm "
    "y = x -> p by (x -> flatten(3) -> linear(p) -> top_k(1)) output y }",
]
