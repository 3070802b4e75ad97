# DeepSeek-V3 (2024), section 2: latent attention, experts beside a shared one, and a second head for the word after next.
block swiglu(width) {
  input x: float[dim]
  output y = (x -> linear(width, bias=false) -> silu) * (x -> linear(width, bias=false))
      -> linear(dim, bias=false)
}

block latent_attention(heads, width, rotated, query_latent, latent) {
  input x: float[time, dim]
  queries = x -> linear(query_latent, bias=false) -> rms_norm -> linear(heads * (width + rotated), bias=false)
  q, q_turned = queries -> unmerge([heads, width + rotated], into=["head", ""]) -> split([width, rotated])
  c, k_turned = x -> rename(time="key") -> linear(latent + rotated, bias=false) -> split([latent, rotated])
  k, v = c -> rms_norm -> linear(heads * 2 * width, bias=false)
      -> unmerge([heads, 2 * width], into=["head", ""]) -> split(2)
  turned = (q_turned -> rotary(axis=time), k_turned -> rotary(axis=key)) -> contract
  scores = (((q, k) -> contract) + turned) / sqrt(width + rotated)
  visible = (x -> positions(axis=time)) >= (c -> positions(axis=key))
  gates = (scores, visible) -> masked_softmax(axis=key)
  output y = v by gates over key -> merge("head", -1) -> linear(dim, bias=false)
}

router grouped(k, groups, near, speed=0.001) for expert {
  input x: float[tokens, dim]
  require len(expert) % groups == 0
  state bias: float[expert] = zeros
  scores = x -> linear(expert, bias=false) -> sigmoid
  within = scores + bias -> unmerge([groups, len(expert) // groups], axis=expert, into=["group", ""])
  open = within * (within -> top_k(2)) -> sum(axis=-1) -> top_k(near)
      -> new_axis(len(expert) // groups, at=-1)
  chosen = where(open -> merge(-2, -1, into=expert), scores + bias, -1e9) -> top_k(k)
  load = chosen -> batch_mean
  next bias = bias + speed * ((load -> mean(axis=expert)) - load -> sign)
  gates = chosen * scores
  gates = gates / (gates -> sum(axis=expert))
  record gates, scores, choice = chosen
  y = x -> expert by gates
  output y
}

block layer(experts, k) {
  input x: float[time, dim]
  pool   expert[experts] = swiglu(dim)
  router gate = grouped(k, groups=2, near=1)
  x = x + (x -> rms_norm -> latent_attention(heads=2, width=4, rotated=2, query_latent=8, latent=8))
  h = x -> rms_norm
  output y = x + (h -> swiglu(dim)) + (h -> expert by gate)
}

model deepseek_v3(vocabulary=30, dim=16, experts=8, k=2) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  target after: class[time, vocabulary]
  tokenizer embed = embedding(dim)
  module    head = linear(vocabulary, bias=false)
  h = words -> embed -> layer(experts, k)
  logits = h -> rms_norm -> head
  ahead = words -> embed -> shift(-1, axis=time) -> rms_norm
  further = (h -> rms_norm, ahead) -> concat -> linear(dim, bias=false) -> layer(experts, k) -> rms_norm
      -> head
  require causal(logits, words)
  output logits
  loss next_word = cross_entropy(logits, next)
  loss after_next = 0.3 * cross_entropy(further, after)
}
