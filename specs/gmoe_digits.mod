# GMoE small enough to train on a laptop: handwritten digits in 16 patches, and mixtures in two of four blocks.
import ffn from "gmoe.mod"

model gmoe_digits(classes=10, dim=32, depth=4, heads=4, experts=6, k=1, sparse=[1, 3], width=16, noise=1.0,
                  balance=0.01, size=16, patch=4) {
  input  image: float[1, size, size]
  target label: class[classes]
  tokenizer patches = patch_embed(patch, dim) -> class_token -> position

  x = image -> patches
  repeat blocks[i] in 0..depth {
    x = x + (x -> layer_norm(name="norm1") -> attention(heads, name="attn"))
    if i in sparse {
      pool   expert[experts] = ffn(dim)
      router gate = cosine(k, width=width, noise=noise / experts)
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
