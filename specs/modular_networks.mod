# Modular Networks on a regression of two maps (Kirsch et al., NeurIPS 2018)
model modular_networks(layers=1, modules=2, slots=1, variance=0.1) {
  input  x: float[2]
  target y: float[2]

  z = x
  repeat layer[i] in 0..layers {
    pool   expert[modules] = linear(2)
    router controller = categorical(slots)
    z = z -> expert by controller
  }

  output z
  loss gaussian(z, y, variance=variance)
}
