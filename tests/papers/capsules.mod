# Capsules (Sabour et al., 2017): vectors route by agreement, and the length of a class's vector is its score.
block squash() {
  input s: float[n, d]
  square = s**2 -> sum(axis=d)
  y = s * (sqrt(square) / (1 + square))
  output y
}

model capsules(size=14, channels=6, maps=2, classes=3, rounds=3) {
  input  image: float[1, size, size]
  target label: class[kind=classes]

  u = image -> conv(channels, kernel=5) -> relu -> conv(8 * maps, kernel=5, stride=2)
  u = u -> unmerge([maps, 8], axis=-3) -> transpose(-4, -2, -1, -3) -> merge(-4, -3, -2, into="capsule")
  u = u -> rename(["-1", "part"]) -> squash
  weight to: float[capsule=maps * 9, kind, out=16, part=8] = normal(0.1)
  prediction = (u, to) -> contract(axis="part")

  b = 0
  v = (prediction -> sum(axis=capsule)) / classes -> squash  # the softmax of zeros
  repeat routing[i] in 1..rounds {
    b = b + ((prediction, v) -> contract(axis=out))
    v = prediction by (b -> softmax(axis=kind)) over capsule -> squash
  }
  length = v**2 -> sum(axis=out) -> sqrt

  is_it = label -> one_hot
  code = v * ((is_it, length -> top_k) -> training_or_inference) -> flatten
  picture = code -> linear(32) -> relu -> linear(size**2) -> sigmoid
  output length
  output picture
  loss margin = is_it * maximum(0.9 - length, 0)**2 + 0.5 * (1 - is_it) * maximum(length - 0.1, 0)**2
      -> sum(axis=kind)
  loss reconstruction = 0.0005 * ((picture - (image -> flatten))**2 -> sum(axis=-1))
}
