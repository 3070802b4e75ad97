"""Specs with pools inside the modules of pools."""

from __future__ import annotations

TWO_LEVELS = """
block expert(dim) {
  input x: float[dim]
  pool inner[3] = linear(dim)
  router gate = linear(1)
  y = x -> inner by gate
  output y
}
model m() {
  input x: float[5, 16]
  target t: class[3]
  pool outer[4] = expert(16)
  router r = linear(1)
  y = x -> outer by r
  z = y -> mean(axis=-2) -> linear(3)
  output z
  loss (z, t) -> cross_entropy
  loss 0.01 * importance(r)
}
"""

ADAPTERS = """
block adapter(dim, rank) {
  input x: float[dim]
  y = x -> linear(rank) -> linear(dim)
  output y
}
block expert(dim) {
  input x: float[dim]
  h = x -> linear(dim) -> relu
  pool adapters[3] = adapter(dim, 2)
  a = h -> adapters by (h -> linear(adapters) -> softmax) over adapters
  every = h -> adapters
  y = h + a + (every -> mean(axis=adapters))
  output y
}
model m() {
  input x: float[5, 8]
  target t: class[3]
  pool outer[4] = expert(8)
  router r = linear(2)
  z = x -> outer by r -> mean(axis=-2) -> linear(3)
  output z
  loss (z, t) -> cross_entropy
  loss 0.01 * importance(r)
}
"""

THREE_LEVELS = """
block leaf(dim) { input x: float[dim] y = x -> linear(dim) -> gelu output y }
block twig(dim) {
  input x: float[dim]
  pool leaves[2] = leaf(dim)
  router gate = cosine(1, width=4)
  y = x -> leaves by gate
  output y
}
block branch(dim) {
  input x: float[dim]
  pool twigs = [twig(dim), linear(dim), twig(dim)]
  router gate = noisy_top_k(2)
  y = x -> layer_norm -> twigs by gate
  output y
}
model m() {
  input x: float[5, 8]
  target t: class[3]
  pool branches[2] = branch(8)
  y = x -> branches by (x -> linear(branches) -> softmax)
  z = y -> mean(axis=-2) -> linear(3)
  output z
  loss (z, t) -> cross_entropy
}
"""

SHARED_WEIGHTS = """
block expert(dim) {
  input x: float[dim]
  pool inner[3] = modulated_linear(dim) -> gelu -> modulated_mlp([4, dim])
  router gate = linear(1)
  h = x -> modulated_linear(dim)
  y = h -> inner by gate
  output y
}
model m() {
  input x: float[5, 8]
  target t: class[3]
  pool outer[2] = expert(8)
  router r = linear(1)
  every = x -> outer
  y = (x -> outer by r) + (every -> mean(axis=outer)) 
  z = y -> mean(axis=-2) -> linear(3)
  output z
  loss (z, t) -> cross_entropy
  loss 0.01 * importance(r)
}
"""

ROWS = """
block mixer(width) {
  input x: float[4, width]
  pool inner[2] = linear(width) -> tanh
  router agree = agreement(2)
  slots = x -> transpose -> linear(3) -> transpose
  y = slots -> inner by agree
  output y
}
block choose(width) {
  input x: float[4, width]
  pool inner[2] = linear(width) -> relu
  s = x -> linear(inner)
  y = x -> inner by ((s -> softmax) * (s -> top_k(2, axis=-2)))
  output y
}
model m() {
  input x: float[5, 4, 6]
  target t: class[3]
  pool outer[2] = choose(6)
  pool other[3] = mixer(6)
  y = x -> outer by (x -> mean(axis=-2) -> linear(outer) -> softmax)
  w = y -> other by (y -> mean(axis=-2) -> linear(other) -> softmax)
  z = w -> flatten -> linear(3)
  output z
  loss (z, t) -> cross_entropy
}
"""

SPECS = {"two levels": TWO_LEVELS, "adapters": ADAPTERS, "three levels": THREE_LEVELS}
MORE = {"shared weights": SHARED_WEIGHTS, "rows of a message": ROWS}
