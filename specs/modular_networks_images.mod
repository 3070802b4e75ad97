# Modular Networks on images: three modular convolutions, two modular linear layers (Kirsch et al., NeurIPS 2018)
model modular_networks_images(classes=10, size=32, modules=5, slots=1, channels=16, hidden=64) {
  input  image: float[3, size, size]
  target label: class[classes]

  x = image
  repeat stage[i] in 0..3 {
    pool   filters[modules] = conv(channels, kernel=3, padding=1)
    router controller = categorical(slots, controller="conv")
    x = x -> filters by controller -> relu -> max_pool(2)
  }

  pool   hidden_layer[modules] = linear(hidden)
  pool   output_layer[modules] = linear(classes)
  router choose_hidden = categorical(slots)
  router choose_output = categorical(slots)
  h = x -> flatten -> hidden_layer by choose_hidden -> relu
  logits = h -> output_layer by choose_output

  output logits
  loss cross_entropy(logits, label)
}
