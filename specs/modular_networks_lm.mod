# Modular Networks on language: a GRU whose candidate is a modular layer (Kirsch et al., NeurIPS 2018)
model modular_networks_lm(vocabulary=1000, width=32, hidden=32, modules=5, slots=1) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]

  pool   transition[modules] = linear(hidden)
  router controller = categorical(slots)

  scan words -> embedding(width) as x with h: float[hidden] {
    z, r = (x, h) -> concat -> linear(2 * hidden) -> sigmoid -> split(2)
    n = (x, r * h) -> concat -> transition by controller -> tanh
    h = (1 - z) * h + z * n
    yield h
  } as states
  logits = states -> linear(vocabulary)

  output logits
  loss cross_entropy(logits, next)
}
