# One matrix is the embedding and the output map (Press and Wolf, 2017), scaled as in Vaswani et al. (2017).
model tied_embedding(vocabulary=12, width=8) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  weight word: float[vocabulary, width] = normal(1 / sqrt(width))

  x = sqrt(width) * ((word, words) -> lookup)
  h = x + (x -> layer_norm -> attention(2, causal=true)) -> layer_norm
  logits = (h, word) -> contract

  output logits
  loss cross_entropy(logits, next)
}
