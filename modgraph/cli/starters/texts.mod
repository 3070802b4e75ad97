# Texts: which word comes next? Each word goes to two of the experts.
model NAME(vocabulary=29, experts=4, width=32) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]

  pool   expert[experts] = linear(2 * width) -> gelu -> linear(width)
  router chooser = noisy_top_k(k=2)

  x = words -> embedding(width)
  h = x + (x -> rms_norm -> attention(4, causal=true))
  y = h + (h -> rms_norm -> expert by chooser)
  logits = y -> rms_norm -> linear(vocabulary)

  output logits
  loss cross_entropy(logits, next)
  loss 0.01 * importance(chooser)
}
