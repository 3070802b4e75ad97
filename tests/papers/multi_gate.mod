# Multi-gate mixture of experts (Ma et al., 2018): tasks share experts, and each has a gate of its own.
model multi_gate(width=6, experts=3, classes=[2, 4]) {
  input x: float[width]
  pool expert[experts] = linear(8) -> relu

  for t in 0..len(classes) {
    target label[t]: class[classes[t]]
    mixed[t] = x -> expert by (x -> linear(expert, bias=false) -> softmax)
    logits[t] = mixed[t] -> linear(classes[t])
    output logits[t]
    loss task[t] = cross_entropy(logits[t], label[t])
  }
}
