# GMoE: sparse mixtures of experts in a vision transformer (Li et al., ICLR 2023). The defaults are GMoE-S/16; GMoE-B/16
# has dim=768, heads=12. sparse=[1, 3, 5, 7, 9, 11] replaces every second block, sparse=[] is the plain transformer. The
# authors' code has capacity=1.5, load="code".
block ffn(dim) {
  input x: float[tokens, dim]
  y = x -> linear(4 * dim, name="fc1") -> gelu -> linear(dim, name="fc2")
  output y
}

model gmoe(classes=345, dim=384, depth=12, heads=6, experts=6, k=1, sparse=[8, 10], gating="cosine",
           width=256, noise=1.0, capacity=0.0, load="paper", balance=0.01, size=224, patch=16) {
  input  image: float[3, size, size]
  target label: class[classes]
  tokenizer patches = patch_embed(patch, dim) -> class_token -> position

  x = image -> patches
  repeat blocks[i] in 0..depth {
    x = x + (x -> layer_norm(name="norm1") -> attention(heads, name="attn"))
    if i in sparse {
      pool expert[experts] = ffn(dim)
      if gating == "cosine" {
        router gate = cosine(k, width=width, noise=noise / experts, load=load, capacity=capacity,
                             priority="first_choice")
      } else {
        router gate = linear(k, noise=noise / experts, load=load, capacity=capacity, priority="first_choice")
      }
      x = x + (x -> layer_norm(name="norm2") -> expert by gate)
    } else {
      x = x + (x -> layer_norm(name="norm2") -> ffn(dim, name="mlp"))
    }
  }
  logits = x -> layer_norm(name="norm") -> select(0) -> linear(classes, name="head")

  output logits
  loss cross_entropy(logits, label)
  loss balance / 2 * (importance(gate) + load(gate))
}
