# Neural interpreters (Rahaman et al., 2021), the routing: functions whose signatures are near a token's type take it.
router read(truncation=1.2) for function {
  input x: float[tokens, dim]
  weight signature: float[function, dim] = normal(1.0)
  weight bandwidth: float = ones
  type = x -> linear(dim) -> tanh -> linear(dim) -> unit
  distance = 1 - ((type, signature -> unit) -> contract)
  near = -distance -> above(-truncation)
  kernel = exp(-distance / bandwidth)
  gates = (log(kernel), near) -> masked_softmax
  record gates, scores = -distance, choice = near
  y = x -> function by gates
  output y
}

block step(dim) {
  input x: float[tokens, dim]
  y = x -> layer_norm -> linear(2 * dim) -> gelu -> linear(dim)
  output y
}

model neural_interpreter(dim=8, functions=3, steps=2, classes=4) {
  input  x: float[time, dim]
  target label: class[classes]
  pool   function[functions] = step(dim)
  router gate = read

  repeat line[i] in 0..steps {
    x = x + (x -> function by gate)
  }
  logits = x -> mean -> linear(classes)

  output logits
  loss cross_entropy(logits, label)
}
