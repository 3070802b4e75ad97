# Attention sinks (Xiao et al., 2024): a token sees the last few and the first few, at its place in a cache of these.
block attend(heads, window, first) {
  input x: float[time, dim]
  keys = x -> rename(time="key")
  q = x -> linear(dim, bias=false) -> unmerge([heads, dim // heads], into=["head", ""])
  k = keys -> linear(dim, bias=false) -> unmerge([heads, dim // heads], into=["head", ""])
  v = keys -> linear(dim, bias=false) -> unmerge([heads, dim // heads], into=["head", ""])
  at = x -> positions(axis=time)
  of = keys -> positions(axis=key)
  back = at - of
  visible = (back >= 0) * maximum(back < window, of < first)
  turned = k -> rotary(axis=key)
  near = (q -> rotary(axis=time), turned * (of >= first)) -> contract
  far = ((q, minimum(at, first + window - 1)) -> rotary(axis=time), turned * (of < first)) -> contract
  gates = ((near + far) / sqrt(dim // heads), visible) -> masked_softmax(axis=key)
  output y = v by gates over key -> merge("head", -1) -> linear(dim, bias=false)
}

model attention_sinks(vocabulary=30, dim=16, layers=2, window=4, first=2) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  x = words -> embedding(dim)
  repeat layer[i] in 0..layers {
    h = x + (x -> rms_norm -> attend(heads=2, window=window, first=first))
    x = h + (h -> rms_norm -> linear(4 * dim) -> silu -> linear(dim))
  }
  logits = x -> rms_norm -> linear(vocabulary, bias=false)
  require causal(logits, words)
  output logits
  loss cross_entropy(logits, next)
}
