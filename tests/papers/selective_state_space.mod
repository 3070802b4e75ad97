# Selective state spaces (Mamba: Gu and Dao, 2023), with experts after each (MoE-Mamba: Pióro et al., 2024).
block mamba(width, inner, states) {
  input x: float[time, dim]
  u, gate = x -> layer_norm -> linear(2 * inner, bias=false) -> split(2)
  u = u -> conv1d(inner, kernel=4, padding="causal", groups=inner) -> silu
  weight rate: float[inner, states] = normal(1)
  weight skip: float[inner] = ones
  scan u as v with h: float[inner, states] {
    step = v -> linear(inner) -> softplus -> new_axis(at=-1)
    write, read = v -> linear(2 * states, bias=false) -> split(2)
    h = exp(0 - step * exp(rate)) * h + step * (v -> new_axis(at=-1)) * write
    yield ((h, read) -> contract) + skip * v
  } as y
  output z = x + (y * (gate -> silu) -> linear(width, bias=false))
}

model selective_state_space(width=6, inner=8, states=4, experts=4, depth=2) {
  input  x: float[time, width]
  target y: float[time, width]
  pool expert[experts] = linear(2 * width) -> silu -> linear(width)

  repeat layer[i] in 0..depth {
    x = x -> mamba(width, inner, states)
    scores = x -> linear(expert) -> softmax
    x = x + (x -> expert by (scores * (scores -> top_k(1))))
  }

  z = x -> layer_norm -> linear(width)
  output z
  loss mse(z, y)
}
