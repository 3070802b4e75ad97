# gpt-oss (OpenAI, 2025): windows in every other layer, a sink for each head, and the best four experts of a token.
block attend(groups, shared, head, local, window, trained, scaled) {
  input x: float[time, dim]
  weight sink: float[group=groups, member=shared] = normal(1.0)
  keys = x -> rename(time="key")
  q = x -> linear(groups * shared * head) -> unmerge([groups, shared, head], into=["group", "member", ""])
  k = keys -> linear(groups * head) -> unmerge([groups, head], into=["group", ""])
  v = keys -> linear(groups * head) -> unmerge([groups, head], into=["group", ""])
  q = q -> rotary(150000, scaled=scaled, trained=trained, cycles=[1, 32], fade="logarithmic", axis=time)
  k = k -> rotary(150000, scaled=scaled, trained=trained, cycles=[1, 32], fade="logarithmic", axis=key)
  back = (x -> positions(axis=time)) - (keys -> positions(axis=key))
  visible = back >= 0
  if local {
    visible = visible * (back < window)
  }
  scores = (1 + 0.1 * log(scaled))**2 / sqrt(head) * ((q, k) -> contract)
  gates = (scores, visible, sink) -> masked_softmax(axis=key)
  output y = v by gates over key -> merge("group", "member", -1) -> linear(dim)
}

block swiglu(dim, hidden, most=7) {
  input x: float[dim]
  gate, up = x -> linear(2 * hidden) -> split(2)
  gate = gate -> clamp(max=most)
  output y = ((up -> clamp(min=-most, max=most)) + 1) * gate * sigmoid(1.702 * gate) -> linear(dim)
}

model gpt_oss(vocabulary=30, dim=16, layers=2, window=4, experts=8, k=4) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  x = words -> embedding(dim)
  repeat layer[i] in 0..layers {
    h = x + (x -> rms_norm(eps=1e-5) -> attend(2, 2, 8, i % 2 == 0, window, trained=64, scaled=32))
    pool expert[experts] = swiglu(dim, dim)
    u = h -> rms_norm(eps=1e-5)
    scores = u -> linear(expert)
    x = h + (u -> expert by ((scores, scores -> top_k(k)) -> masked_softmax))
  }
  logits = x -> rms_norm(eps=1e-5) -> linear(vocabulary, bias=false)
  require causal(logits, words)
  output logits
  loss cross_entropy(logits, next)
}
