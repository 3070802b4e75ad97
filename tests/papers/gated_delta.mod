# Gated delta rule (Yang et al., 2025), as in Qwen3-Next: each head's matrix fades, then moves what it gives for a key
# towards a value.
model gated_delta(width=8, heads=2, keys=3, values=4) {
  input  x: float[time, width]
  target y: float[time, width]
  weight rate: float[head=heads] = normal(1)

  scan x as v with s: float[head=heads, value=values, key=keys] {
    query = v -> linear(heads * keys) -> unmerge([heads, keys], into=["head", "key"]) -> unit
    key = v -> linear(heads * keys) -> unmerge([heads, keys], into=["head", "key"]) -> unit
    value = v -> linear(heads * values) -> unmerge([heads, values], into=["head", "value"])
    beta = v -> linear(heads) -> sigmoid -> unmerge([heads], into=["head"])
    step = v -> linear(heads) -> softplus -> unmerge([heads], into=["head"])

    s = exp(0 - step * exp(rate)) * s
    error = value - ((s, key) -> contract(axis="key"))
    s = s + (beta * error -> new_axis(keys, axis="key", at=-1)) * key
    yield (s, query) -> contract(axis="key")
  } as read

  z = (read -> layer_norm -> merge) * (x -> linear(heads * values) -> silu) -> linear(width)
  output z
  loss mse(z, y)
}
