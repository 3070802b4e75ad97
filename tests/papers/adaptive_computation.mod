# Adaptive computation time (Graves, 2016): a recurrent network takes as many steps for each input as it decides.
model adaptive_computation(width=6, most=5, cost=0.01) {
  input  x: float[time, 4]
  target y: float[time, 3]
  weight first: float[width] = normal(0.5)

  scan x as v with s: float[width] {
    scan 0..most as n with h: float[width] = s, total: float, mean: float[width] {
      h = ((v, h) -> concat -> linear(width)) + (n == 0) * first -> tanh
      p = h -> linear(1) -> sigmoid -> sum(axis=-1)
      last = maximum(total + p >= 0.99, n == most - 1)
      share = where(last, 1 - total, p)
      total = total + p
      mean = mean + share * h
      yield (mean, n + 1 + share)
    } until last as state, ponder
    s = state
    yield (s, ponder)
  } as states, ponders

  z = states -> linear(3)
  output z
  output ponders
  loss mse(z, y)
  loss cost * (ponders -> sum(axis=-1))
}
