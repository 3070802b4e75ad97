# Numbers: a few linear functions, and a router that weighs them for each row.
model NAME(experts=2) {
  input  x: float[2]
  target y: float[2]

  pool expert[experts] = linear(2)

  gates = x -> linear(expert) -> softmax
  prediction = x -> expert by gates

  output prediction
  loss mse(prediction, y)
}
