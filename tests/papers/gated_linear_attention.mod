# Gated linear attention (Yang et al., 2024): each head adds value · keyᵀ to a matrix, whose columns fade by gates.
# With one gate for all columns it is RetNet (Sun et al., 2023).
model gated_linear_attention(width=8, heads=2, keys=3, values=4) {
  input  x: float[time, width]
  target y: float[time, width]

  scan x as v with s: float[head=heads, value=values, key=keys] {
    query = v -> linear(heads * keys) -> unmerge([heads, keys], into=["head", "key"])
    key = v -> linear(heads * keys) -> unmerge([heads, keys], into=["head", "key"])
    value = v -> linear(heads * values) -> unmerge([heads, values], into=["head", "value"])
    gate = v -> linear(heads * keys) -> sigmoid -> unmerge([heads, keys], into=["head", "key"])
    s = gate**(1 / 16) * s + (value -> new_axis(keys, axis="key", at=-1)) * key
    yield (s, query) -> contract(axis="key")
  } as read

  z = (read -> layer_norm -> merge) * (x -> linear(heads * values) -> silu) -> linear(width)
  output z
  loss mse(z, y)
}
