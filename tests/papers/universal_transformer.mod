# A universal transformer (Dehghani et al., 2019): one layer, as often for each word as the word decides.
block layer(width) {
  input x: float[tokens, width]
  h = x + (x -> attention(2, causal=true)) -> layer_norm
  output y = h + (h -> linear(2 * width) -> relu -> linear(width)) -> layer_norm
}

model universal_transformer(vocabulary=12, width=8, most=6, cost=0.01) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  weight place: float[most, width] = normal(0.5)  # of each round

  scan place as v with h: float[time, width] = words -> embedding(width), total: float[time],
      mean: float[time, width], rounds: float[time] {
    p = h + v -> linear(1) -> sigmoid -> sum(axis=-1)
    last = total + p > 0.99
    share = where(last, 1 - total, p)
    h = h + v -> layer(width)
    mean = share * h + (1 - share) * mean
    total = total + p
    rounds = rounds + 1
    yield (mean, rounds + last * share)
  } until last as z, ponder

  logits = z -> linear(vocabulary)
  output logits
  output ponder
  loss cross_entropy(logits, next)
  loss cost * (ponder -> mean(axis=-1))
  require causal(logits, words)
}
