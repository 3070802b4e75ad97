# Perceiver (Jaegle et al., 2021): a few learned latents read a long input again and again.
block mlp(dim) {
  input x: float[tokens, dim]
  y = x -> layer_norm -> linear(2 * dim) -> gelu -> linear(dim)
  output y
}

model perceiver(dim=8, latents=3, depth=2, classes=5) {
  input  x: float[time, dim]
  target label: class[classes]
  weight latent: float[latents, dim] = normal(0.02)
  module read = attention(2)  # shared by all layers

  z = latent
  repeat layer[i] in 0..depth {
    z = z + ((z -> layer_norm(name="norm"), x) -> read)
    z = z + (z -> mlp(dim, name="after"))
    z = z + (z -> layer_norm(name="norm2") -> attention(2, name="think"))
  }
  logits = z -> mean -> linear(classes)

  output logits
  loss cross_entropy(logits, label)
}
