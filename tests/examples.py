"""The small specs that ops and routers declare as their examples, and some larger ones."""

from __future__ import annotations

from modgraph.ops import Op
from modgraph.routers import Router

OP_EXAMPLES = {name: f"model example() {{ {op.example} }}" for name, op in Op.registry.items()}
ROUTER_EXAMPLES = {name: f"model example() {{ {router.example} }}" for name, router in Router.registry.items()}

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
