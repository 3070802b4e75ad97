# Images: a pool of experts that agree on who takes which patch.
model NAME(classes=10, experts=4, width=64) {
  input  image: float[1, 28, 28]
  target label: class[classes]

  tokenizer patches = patch_embed(7, width) -> position
  pool      expert[experts] = linear(2 * width) -> gelu -> linear(width)
  router    agree = agreement(iterations=2)

  logits = image -> patches -> expert by agree -> mean -> linear(classes)

  output logits
  loss cross_entropy(logits, label)
  loss 0.01 * importance(agree)
}
