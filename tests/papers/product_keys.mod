# A million modules of one neuron (PEER, He, 2024), found by product keys (Lample et al., 2019): of keys² modules each
# head runs k, and only their rows of the two arrays are read.
model product_keys(width=16, heads=2, keys=8, k=3, key=6) {
  input  x: float[time, width]
  target y: float[time, width]
  weight first: float[keys, key] = normal(1 / sqrt(key))
  weight second: float[keys, key] = normal(1 / sqrt(key))
  weight down: float[keys**2, width] = normal(1 / sqrt(width))
  weight up: float[keys**2, width] = normal(1 / sqrt(width))

  query = x -> linear(heads * 2 * key) -> unmerge([heads, 2 * key], into=["head", ""]) -> layer_norm
  a, b = query -> split(2)
  rows = (a, first) -> contract
  columns = (b, second) -> contract
  row = rows -> top_k_indices(k)
  column = columns -> top_k_indices(k)
  pairs = ((rows, row) -> lookup -> new_axis(k, at=-1)) + ((columns, column) -> lookup -> new_axis(k, at=-2))
      -> merge
  best = pairs -> top_k_indices(k, into="slot")
  id = ((row, best // k) -> lookup) * keys + ((column, best % k) -> lookup)  # token[time, head, slot, keys²]

  gates = (pairs, best) -> lookup -> softmax(axis="slot")
  neuron = ((down, id) -> lookup(sparse=true), x) -> contract -> gelu
  z = (up, id) -> lookup(sparse=true) by (gates * neuron) over slot -> sum(axis="head")

  output z
  loss mse(z, y)
}
