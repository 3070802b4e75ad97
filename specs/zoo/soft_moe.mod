# Soft mixture of experts in a vision transformer (Puigcerver et al., From Sparse to Soft Mixtures of Experts, ICLR 2024).
# Each slot is a mean of the tokens, each expert runs on its slots, and each token gets a mean of the results.
model soft_moe(dim=32, depth=2, heads=4, experts=4, slots=2, classes=10) {
  input  image: float[1, 8, 8]
  target label: class[classes]

  x = image -> patch_embed(2, dim) -> position -> unmerge([16], axis=-2, into=["token"])

  repeat blocks[i] in 0..depth {
    pool expert[experts] = linear(4 * dim) -> gelu -> linear(dim)

    x = x + (x -> layer_norm -> attention(heads))
    h = x -> layer_norm
    scores = h -> linear(slots * experts, bias=false)
    dispatch = scores -> softmax(axis="token") -> unmerge([slots, experts], into=["slot", "expert"])
    combine = scores -> softmax -> unmerge([slots, experts], into=["slot", "expert"])
    x = x + (h by dispatch over token -> expert by combine over expert -> sum(axis="slot"))
  }

  logits = x -> layer_norm -> mean -> linear(classes)

  output logits
  loss cross_entropy(logits, label)
}
