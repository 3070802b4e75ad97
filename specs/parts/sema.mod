# What SEMA is made of (Wang et al., CVPR 2025): adapters, their descriptors, and the routers that mix them.

# Adapters of tokens, which start as nothing: AdaptFormer's bottleneck, and a matrix of low rank.
block bottleneck(dim, width) {
  input x: float[tokens, dim]
  weight bias: float[dim] = zeros
  y = (x -> linear(width, name="down") -> relu -> linear(dim, bias=false, name="up", init=zeros)) + bias
  output y
}

block lora(dim, width) {
  input x: float[tokens, dim]
  y = x -> linear(width, bias=false, name="down") -> linear(dim, bias=false, name="up", init=zeros)
  output y
}

# Convpass (Jie and Deng, 2022), an adapter of images. The class token, in front of rows × rows patches, is one by itself.
block convpass(dim, width, rows) {
  require rows > 1
  input x: float[1 + rows * rows, dim]
  weight bias: float[dim] = zeros
  module local = conv(width, kernel=3, padding=1)

  token, patches = x -> linear(width, name="down") -> gelu -> transpose -> split([1, rows * rows])
  token = token -> unmerge([1, 1]) -> local -> merge
  patches = patches -> unmerge([rows, rows]) -> local -> merge
  y = ((token, patches) -> concat -> gelu -> transpose -> linear(dim, bias=false, name="up", init=zeros))
      + bias
  output y
}

# What an adapter was trained on, told by how well an image's features are made again.
block autoencoder(dim, hidden) {
  input x: float[dim]
  y = x -> linear(hidden, name="encoder") -> linear(dim, name="decoder")
  output y
}

# How far an image lies from what each descriptor was trained on: |error − mean| / deviation of the errors that it made
# last, and 0 while it has made two or fewer. Where the errors of one batch fill a record, it keeps the last of them, and
# it moves in the phases that train descriptors. That of the authors' code keeps the first that fit, and moves in the
# functional phase too.
block surprise(descriptor, keeps=500) {
  input features: float[dim]
  state errors: float[descriptor, keeps] = zeros
  state filled: float[descriptor, keeps] = zeros

  error = ((features -> descriptor) - features)**2 -> mean(axis=-1)
  next errors = (errors, error) -> keep_recent
  next filled = (filled, error >= 0) -> keep_recent
  count = filled -> sum(axis=-1)
  centre = (errors -> sum(axis=-1)) / maximum(count, 1)
  variance = (filled * (errors - centre)**2 -> sum(axis=-1)) / maximum(count - 1, 1)
  far = abs(error - centre) / maximum(sqrt(variance), 0.000001)
  z = where(count > 2, far, 0)
  output error
  output z
}

# The weights of a mixture of adapters, for each image or each token: a softmax of what is made of their mean or of each;
# for comparison equal ones, random ones (equal in inference), or the largest alone, always or in inference.
block gating(adapter, kind, per) {
  require kind in ["soft", "average", "random", "top_1", "top_1_in_inference"]
  require per in ["image", "token"]
  input x: float[tokens, dim]
  seen = x
  if per == "image" {
    seen = x -> mean(axis=tokens)
  }
  constant equal: float[adapter] = 0
  scores = equal
  if kind == "random" {
    scores = equal -> normal_noise(1.0)
  }
  if not kind in ["average", "random"] {
    scores = seen -> linear(adapter, name="column")
  }
  gates = scores -> softmax
  if kind == "top_1" {
    gates = gates * (scores -> top_k(1))
  }
  if kind == "top_1_in_inference" {
    gates = (gates, gates * (scores -> top_k(1))) -> training_or_inference
  }
  output gates
}

router mixed(kind="soft", per="image") for adapter {
  input x: float[tokens, dim]
  gates = x -> gating(adapter, kind, per)
  record gates
  y = x -> adapter by gates over adapter
  output y
}

# The same, where the adapters have descriptors, to which an image is so novel.
router familiar(kind="soft", per="image") for adapter {
  input x: float[tokens, dim]
  input novelty: float[descriptors]
  gates = x -> gating(adapter, kind, per)
  record gates, novelty
  y = x -> adapter by gates over adapter
  output y
}
