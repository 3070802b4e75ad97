# specs/modular_networks_lm.mod with the two routers that its paper compares a learned controller with: noisy top-k,
# and the same modules for every word
model modular_networks_lm(vocabulary=1000, width=32, hidden=32, modules=5, slots=1, routing="noisy") {
  require routing in ["noisy", "fixed"]
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]

  pool transition[modules] = linear(hidden)
  if routing == "noisy" {
    router controller = noisy_top_k(4)
  } else {
    router controller = fixed(slots)
  }

  scan words -> embedding(width) as x with h: float[hidden] {
    z, r = (x, h) -> concat -> linear(2 * hidden) -> sigmoid -> split(2)
    n = (x, r * h) -> concat -> transition by controller -> tanh
    h = (1 - z) * h + z * n
    yield h
  } as states
  logits = states -> linear(vocabulary)

  output logits
  loss cross_entropy(logits, next)
  if routing == "noisy" {
    loss 0.01 * importance(controller)
  }
}
