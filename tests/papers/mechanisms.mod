# Recurrent independent mechanisms (Goyal et al., 2021): of the modules the k that look most at the input move.
block gru(hidden) {
  input v: float[width]
  input h: float[hidden]
  z, r = (v, h) -> concat -> linear(2 * hidden) -> sigmoid -> split(2)
  n = (v, r * h) -> concat -> linear(hidden) -> tanh
  output next = (1 - z) * h + z * n
}

model rim(width=6, hidden=8, modules=5, k=2) {
  input  x: float[time, width]
  target y: float[time, width]
  pool cell[modules] = gru(hidden)
  pool query[cell] = linear(hidden, bias=false)

  scan x as v with h: float[cell, hidden] {
    key = v -> linear(hidden)
    chosen = ((h -> query, key) -> contract) -> top_k(k)
    place = chosen -> dispatch(k, into="slot")
    moved = (v, h by place over cell) -> cell by place
    talked = moved + (moved -> attention(2, name="talk"))
    h = where(chosen, talked by place over slot, h)
    yield h -> mean(axis=cell)
  } as states

  z = states -> linear(width)
  output z
  loss mse(z, y)
}
