# SwitchHead (Csordás et al., 2024): a few heads, whose values and outputs are sums of experts that each token chooses.
block mixture(width, experts, k) {
  input x: float[dim]  # it chooses
  input u: float[inner]  # what the chosen experts map
  pool expert[experts] = linear(width, bias=false)
  scores = x -> linear(expert, bias=false) -> sigmoid
  output y = u -> expert by (scores * (scores -> top_k(k)))
}

model switch_head(dim=16, heads=2, width=6, experts=4, active=2) {
  input  x: float[time, dim]
  target y: float[time, dim]
  pool head[heads] = mixture(width, experts, active)
  pool out[head] = mixture(dim, experts, active)
  keys = x -> rename(time="key")
  q = x -> linear(heads * width, bias=false) -> unmerge([heads, width], into=["head", ""])
  k = keys -> linear(heads * width, bias=false) -> unmerge([heads, width], into=["head", ""])
  v = (keys, keys) -> head
  past = (x -> positions(axis="time")) >= (keys -> positions(axis="key"))
  gates = (((q, k) -> contract) / sqrt(width), past) -> masked_softmax(axis="key")
  z = (x, v by gates over key) -> out -> sum(axis=head)
  require causal(z, x)
  output z
  loss mse(z, y)
}
