block swiglu(dim, hidden) {
  input x: float[dim]
  y = (x -> linear(hidden, bias=false) -> silu) * (x -> linear(hidden, bias=false)) -> linear(dim, bias=false)
  output y
}
router balanced(k=4, speed=0.001) for expert {
  input x: float[tokens, dim]
  state bias: float[expert] = zeros
  scores = x -> linear(expert, bias=false) -> sigmoid
  chosen = scores + bias -> top_k(k)
  load = chosen -> batch_mean
  next bias = bias + speed * ((load -> mean(axis=expert)) - load -> sign)
  gates = chosen * scores
  gates = gates / (gates -> sum(axis=expert))
  record gates, scores, choice = chosen
  y = x -> expert by gates
  output y
}
model deepseek_moe(dim=16, experts=16, shared=1, k=4) {
  input  x: float[time, dim]
  target y: float[time, dim]
  pool   expert[experts] = swiglu(dim, 8)
  router gate = balanced(k)
  z = x + (x -> swiglu(dim, 8 * shared)) + (x -> expert by gate)
  output z
  loss mse(z, y)
}
