# Gemma 2 (2024): scores and logits are capped, every other layer sees a window, and each part has a norm on both sides.
block attend(groups, shared, head, local, window, cap=50) {
  input x: float[time, dim]
  keys = x -> rename(time="key")
  q = x -> linear(groups * shared * head, bias=false)
      -> unmerge([groups, shared, head], into=["group", "member", ""])
  k = keys -> linear(groups * head, bias=false) -> unmerge([groups, head], into=["group", ""])
  v = keys -> linear(groups * head, bias=false) -> unmerge([groups, head], into=["group", ""])
  back = (x -> positions(axis=time)) - (keys -> positions(axis=key))
  visible = back >= 0
  if local {
    visible = visible * (back < window)
  }
  scores = ((q -> rotary(axis=time), k -> rotary(axis=key)) -> contract) / sqrt(head)
  gates = (cap * tanh(scores / cap), visible) -> masked_softmax(axis=key)
  output y = v by gates over key -> merge("group", "member", -1) -> linear(dim, bias=false)
}

block geglu(hidden) {
  input x: float[time, dim]
  gate = x -> linear(hidden, bias=false) -> gelu("tanh")
  output y = gate * (x -> linear(hidden, bias=false)) -> linear(dim, bias=false)
}

model soft_caps(vocabulary=30, dim=16, layers=2, window=3, cap=30) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  weight word: float[vocabulary, dim] = normal(0.02)
  x = sqrt(dim) * ((word, words) -> lookup)
  repeat layer[i] in 0..layers {
    h = x + (x -> rms_norm -> attend(2, 2, 4, local=i % 2 == 0, window=window) -> rms_norm)
    x = h + (h -> rms_norm -> geglu(4 * dim) -> rms_norm)
  }
  logits = cap * tanh(((x -> rms_norm, word) -> contract) / cap)
  require causal(logits, words)
  output logits
  loss cross_entropy(logits, next)
}
