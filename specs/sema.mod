# SEMA: a frozen vision transformer whose last blocks get adapters while it learns one task after another (Wang et al.,
# CVPR 2025). The defaults are ViT-B/16 on its first task. `adapters` gives the number in each block, so a grown model
# has a spec: -s adapters=[1,1,1,1,1,1,1,1,1,2,1,3]. The blocks in `expands` have a descriptor for each adapter, and get
# another adapter if a batch of images is novel to all of them.
import bottleneck, lora, convpass, autoencoder, surprise, mixed, familiar from "parts/sema.mod"

model sema(classes=100, dim=768, depth=12, heads=12, variant="bottleneck", width=16, gating="soft",
           per="image", adapters=[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], expands=[9, 10, 11], hidden=128,
           keeps=500, threshold=2.0, normed=false, size=224, patch=16, channels=3) {
  require variant in ["bottleneck", "lora", "convpass"]
  require variant != "convpass" or per == "image"
  require len(adapters) == depth
  input  image: float[channels, size, size]
  target label: class[kind=classes]
  frozen {
    tokenizer patches = patch_embed(patch, dim) -> class_token -> position
  }

  x = image -> patches
  repeat blocks[i] in 0..depth {
    frozen {
      module norm1 = layer_norm
      module attn = attention(heads)
      module norm2 = layer_norm
      module mlp = linear(4 * dim, name="fc1") -> gelu -> linear(dim, name="fc2")
    }
    if variant == "bottleneck" {
      pool adapter[adapters[i]] = bottleneck(dim, width)
    } else if variant == "lora" {
      pool adapter[adapters[i]] = lora(dim, width)
    } else {
      pool adapter[adapters[i]] = convpass(dim, width, size // patch)
    }
    x = x + (x -> norm1 -> attn)
    n = x -> norm2
    seen = x
    if normed {
      seen = n
    }
    x = x + (n -> mlp)
    if i in expands {
      pool descriptor[adapter] = autoencoder(dim, hidden)
      error, novelty = seen -> mean(axis=-2) -> stop_gradient -> surprise(descriptor, keeps, name="record")
      loss novelty[i] = error -> sum(axis=-1)
      router mixture = familiar(gating, per)
      x = x + (seen -> adapter by mixture(novelty))
    } else {
      router mixture = mixed(gating, per)
      x = x + (seen -> adapter by mixture)
    }
    grow adapter by mixture when min(batch_mean(mixture.novelty), axis=-1) > threshold where i in expands
  }
  frozen {
    module norm = layer_norm
  }
  logits = x -> norm -> select(0) -> linear(kind, name="head")

  output logits
  loss cross_entropy(logits, label)
}
