# Expert choice routing (Zhou et al., Mixture-of-Experts with Expert Choice Routing, NeurIPS 2022) in a vision transformer.
# Each expert takes the `capacity` tokens that score it highest, so that all have the same load and need no balance loss.
model expert_choice(dim=32, depth=2, heads=4, experts=4, capacity=8, classes=10) {
  input  image: float[1, 8, 8]
  target label: class[classes]

  x = image -> patch_embed(2, dim) -> position -> unmerge([16], axis=-2, into=["token"])

  repeat blocks[i] in 0..depth {
    pool expert[experts] = linear(4 * dim) -> gelu -> linear(dim)

    x = x + (x -> layer_norm -> attention(heads))
    h = x -> layer_norm
    scores = h -> linear(expert, bias=false) -> softmax
    x = x + (h -> expert by (scores * (scores -> top_k(capacity, axis="token"))))
  }

  logits = x -> layer_norm -> mean -> linear(classes)

  output logits
  loss cross_entropy(logits, label)
}
