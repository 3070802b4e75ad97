"""The small specs that ops and routers declare as their examples, and some larger ones."""

from __future__ import annotations

import re
from collections.abc import Iterable

from modgraph.ops import Op
from modgraph.routers import Router

OP_EXAMPLES = {name: f"model example() {{ {op.example} }}" for name, op in Op.registry.items()}
ROUTER_EXAMPLES = {name: f"model example() {{ {router.example} }}" for name, router in Router.registry.items()}
PREFIX = "input x: float[5, 6] "
ROUTERS_IN_SCAN = {
    name: "model example() { input xs: float[time, 5, 6] scan xs as x { "
    + router.example.removeprefix(PREFIX).replace("output y", "yield y")
    + " } as y output y }"
    for name, router in Router.registry.items()
    if router.example.startswith(PREFIX) and router.example.endswith("output y")
}


def routers_in_one_scan() -> str:
    """The routers of `ROUTERS_IN_SCAN` beside each other in one scan, each a block with an output of its own."""
    names = list(ROUTERS_IN_SCAN)
    blocks = [f"block with_{name}() {{ {Router.registry[name].example} }}" for name in names]
    steps = [f"{name} = x -> with_{name} yield {name}" for name in names]
    outputs = [f"output of_{name}" for name in names]
    scan = ["scan xs as x {", *steps, "} as", ", ".join(f"of_{name}" for name in names)]
    return "\n".join([*blocks, "model routers() { input xs: float[time, 5, 6]", *scan, *outputs, "}"])


TRANSFORMER = """
model tiny(dim=8, depth=2, sparse=[1]) {
  input  image: float[3, 8, 8]
  target label: class[5]
  x = image -> patch_embed(4, dim) -> class_token -> position
  repeat blocks[i] in 0..depth {
    x = x + (x -> layer_norm -> attention(2))
    if i in sparse {
      pool   expert[3] = linear(2 * dim) -> gelu -> linear(dim)
      router agree = agreement(2)
      x = x + (x -> layer_norm -> expert by agree -> mean -> dropout(0.5))
    } else {
      x = x + (x -> layer_norm -> linear(4 * dim) -> gelu -> linear(dim))
    }
  }
  logits = x -> layer_norm -> select(0) -> linear(5)
  output logits
  loss cross_entropy(logits, label)
  loss 0.01 * importance(agree)
}
"""

SEQUENCE = """
model sequence(width=6) {
  input  words: token[time, 20]
  target label: class[3]
  pool   p[2] = linear(width)
  router r = agreement(2)
  x = words -> embedding(width) -> attention(2)
  s = x -> p by r -> mean
  logits = (x -> mean, x -> max, s) -> concat -> linear(3)
  output logits
  loss cross_entropy(logits, label)
}
"""

GRU = """
model gru(hidden=6, modules=3, k=1, vocabulary=20) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  pool   transition[modules] = linear(hidden)
  router controller = noisy_top_k(k)
  scan words -> embedding(5) as x with h: float[hidden] {
    z, r = (x, h) -> concat -> linear(2 * hidden) -> sigmoid -> split(2)
    n    = (x, r * h) -> concat -> transition by controller -> tanh
    h    = (1 - z) * h + z * n
    yield h
  } as states
  logits = states -> linear(vocabulary)
  output logits
  loss cross_entropy(logits, next)
  loss 0.1 * importance(controller)
}
"""

TWO_SCANS = """
block rnn(width) {
  input  x: float[time, dim]
  pool   cell[2] = linear(width) -> tanh
  router choose = noisy_top_k(1, softmax="before_top_k")
  scan x as v with h: float[width] {
    h = (v, h) -> concat -> cell by choose
    yield h
  } as states
  output states
  loss 0.1 * importance(choose)
}

model two(width=4, depth=2) {
  input  frames: float[time, 3]
  input  context: float[width]
  module enc = linear(width) -> tanh
  pool   mixed = [linear(width), linear(5) -> gelu -> linear(width), identity]
  router pick = noisy_top_k(2)
  x = frames -> enc
  repeat layers[i] in 0..depth {
    x = x + (x -> rnn(width))
  }
  a, b = context -> split(2)
  scan x as v with h: float[width] = context, n: float[width] {
    q = ((v, h, a) -> concat -> linear(3) -> enc) + v
    repeat mix[j] in 0..2 { q = q + (q -> mixed by pick) }
    if width > 2 { n = n + 0.1 * q }
    h = (h, n) -> concat -> linear(width) -> tanh
    yield (h, q * h)
  } as states, products
  final = states -> last
  mean_product = products -> mean
  output final
  output mean_product
  output states
  loss importance(pick)
}
"""


def together(examples: Iterable[str]) -> str:
    """Several examples in one model, each a block with inputs and outputs of its own, to be exported in one go."""
    blocks, inputs, calls = list[str](), list[str](), list[str]()
    for at, example in enumerate(examples):
        body = example.removeprefix("model example()")
        given = re.findall(r"input (\w+): (\w+\[[^]]*\])", body)
        results = [f"y{at}_{name}" for name in re.findall(r"output (\w+)", body)]
        inputs += [f"input x{at}_{name}: {type_}" for name, type_ in given]
        operands = ", ".join(f"x{at}_{name}" for name, _ in given)
        blocks.append(f"block example{at}() {body}")
        calls.append(
            f"{', '.join(results)} = ({operands}) -> example{at}" if results else f"({operands}) -> example{at}"
        )
        calls += [f"output {name}" for name in results]
    return "\n".join([*blocks, "model together() {", *inputs, *calls, "}"])


NOVEL = """
router novel() for adapter, descriptor {
  input x: float[tokens, dim]
  scores = x -> linear(adapter)
  gates = scores -> softmax
  image = x -> mean(axis=tokens)
  off = (image -> descriptor) - image
  record gates, distance: other = off ** 2 -> mean(axis=-1)
  y = x -> adapter by gates
  output y
}
block expert(dim) {
  input x: float[tokens, dim]
  y = x -> linear(3) -> relu -> linear(dim, init=zeros)
  output y
}
model growing(first=1, sizes=[1, 2], dim=6) {
  input  x: float[5, dim]
  target label: class[kind=3]
  repeat blocks[i] in 0..len(sizes) {
    pool   adapter[sizes[i]] = expert(dim)
    pool   descriptor[adapter] = linear(2) -> linear(dim)
    router r = novel
    x = x + (x -> adapter by r(descriptor))
    grow adapter by r when (r.distance -> batch_mean -> min(axis=-1)) > 2 where i >= first
    loss novelty[i] = r.distance -> mean(axis=-1)
  }
  logits = x -> mean -> linear(kind)
  output logits
  loss cross_entropy(logits, label)
  loss 0.01 * importance(r)
}
"""

# trains and exports in seconds, and reaches what most commands import
AGREEING = """
model m() {
  input  x: float[3, 4]
  target label: class[2]
  pool   p[2] = linear(4)
  router r = agreement(2)
  logits = x -> p by r -> mean -> linear(2)
  output logits
  loss cross_entropy(logits, label)
}
"""
