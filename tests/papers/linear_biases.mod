# ALiBi (Press et al., 2022): no positions, but a bias for each pair: its distance, times a slope of each head.
block attend(heads) {
  input x: float[time, dim]
  keys = x -> rename(time="key")
  q = x -> linear(dim) -> unmerge([heads, dim // heads], into=["head", ""])
  k = keys -> linear(dim) -> unmerge([heads, dim // heads], into=["head", ""])
  v = keys -> linear(dim) -> unmerge([heads, dim // heads], into=["head", ""])
  slope = 2**(-8 / heads * ((q -> positions(axis="head")) + 1))
  back = (x -> positions(axis=time)) - (keys -> positions(axis=key))
  scores = ((q, k) -> contract) / sqrt(dim // heads) - slope * back
  gates = (scores, back >= 0) -> masked_softmax(axis=key)
  output y = v by gates over key -> merge("head", -1) -> linear(dim)
}

model linear_biases(vocabulary=30, dim=16, layers=2) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  x = words -> embedding(dim)
  repeat layer[i] in 0..layers {
    h = x + (x -> layer_norm -> attend(heads=4))
    x = h + (h -> layer_norm -> linear(4 * dim) -> relu -> linear(dim))
  }
  logits = x -> layer_norm -> linear(vocabulary)
  require causal(logits, words)
  output logits
  loss cross_entropy(logits, next)
}
