# Parameter efficient expert retrieval (PEER, He, 2024): of keys² modules of one neuron each head runs k, found by
# product keys. The published model has keys = 1,024, heads = 8, k = 16.
model peer(width=16, heads=2, keys=8, k=3, key=6) {
  input  x: float[time, width]
  target y: float[time, width]
  pool expert[keys**2] = linear(1, bias=false) -> gelu -> linear(width, bias=false)
  weight first: float[keys, key] = normal(1 / sqrt(key))
  weight second: float[keys, key] = normal(1 / sqrt(key))

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
  z = x -> expert by (gates * (id -> one_hot(expert)) -> sum(axis="slot") -> sum(axis="head"))

  output z
  loss mse(z, y)
}
