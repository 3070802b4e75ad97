# The attention of gpt-oss (OpenAI, 2025): grouped queries, a window, and a sink: a logit of each head without a value.
model gpt_oss_attention(width=16, groups=2, shared=2, head=4, window=6) {
  input x: float[time, width]
  keys = x -> rename(time="key")
  q = x -> linear(groups * shared * head) -> unmerge([groups, shared, head], into=["group", "member", ""])
  k = keys -> linear(groups * head) -> unmerge([groups, head], into=["group", ""])
  v = keys -> linear(groups * head) -> unmerge([groups, head], into=["group", ""])
  weight sink: float[group=groups, member=shared] = normal(1.0)
  back = (x -> positions(axis="time")) - (keys -> positions(axis="key"))
  near = (back >= 0) * (back < window)
  gates = (((q, k) -> contract) / sqrt(head), near, sink) -> masked_softmax(axis="key")
  y = (v by gates over key) -> merge(-3, -2, -1) -> linear(width)
  output y
}
