# A vision transformer to train on some classes before SEMA learns others with it. Its weights have the names of those
# of sema.mod, except for the head.
model sema_backbone(classes=5, dim=48, depth=4, heads=4, size=28, patch=7, channels=1) {
  input  image: float[channels, size, size]
  target label: class[classes]
  tokenizer patches = patch_embed(patch, dim) -> class_token -> position

  x = image -> patches
  repeat blocks[i] in 0..depth {
    module norm1 = layer_norm
    module attn = attention(heads)
    module norm2 = layer_norm
    module mlp = linear(4 * dim, name="fc1") -> gelu -> linear(dim, name="fc2")
    x = x + (x -> norm1 -> attn)
    x = x + (x -> norm2 -> mlp)
  }
  module norm = layer_norm
  logits = x -> norm -> select(0) -> linear(classes, name="head_before")

  output logits
  loss cross_entropy(logits, label)
}
