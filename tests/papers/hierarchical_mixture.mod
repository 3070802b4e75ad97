# Hierarchical mixtures of experts (Jordan & Jacobs, 1994): a gate weighs branches, and the gate of each branch its experts.
block mixture(experts, classes) {
  input x: float[width]
  pool expert[experts] = linear(classes)
  y = x -> expert by (x -> linear(expert) -> softmax)
  output y
}

model hierarchical_mixture(width=6, branches=3, experts=2, classes=4) {
  input  x: float[width]
  target label: class[classes]
  pool branch[branches] = mixture(experts, classes)

  logits = x -> branch by (x -> linear(branch) -> softmax)

  output logits
  loss cross_entropy(logits, label)
}
