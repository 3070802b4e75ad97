# The parts of SEMA (Wang et al., CVPR 2025): adapters, their descriptors, and the routers that mix them.

# Adapters of tokens, whose initial results are zero: AdaptFormer's bottleneck, and a matrix of low rank.
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

# Convpass (Jie and Deng, 2022), an adapter of images of rows × rows patches. The class token in front is an image of
# its own.
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

# The descriptor of an adapter: an autoencoder, whose error is small for features like those that it was trained on.
block autoencoder(dim, hidden) {
  input x: float[dim]
  y = x -> linear(hidden, name="encoder") -> linear(dim, name="decoder")
  output y
}

# The distance of an image from the training data of each descriptor: |error − mean| / deviation of the errors that the
# descriptor recorded last, and 0 while it has recorded two or fewer. If the errors of one batch fill a record, the
# record keeps the last of them. It is updated in the phases that train descriptors. The authors' code keeps the first
# errors that fit, and also updates in the functional phase.
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

# The weights of a mixture of adapters, for each image or each token: a softmax computed from the mean of the tokens or
# from each token. For comparison: equal weights, random ones (equal in inference), or only the largest, always or in
# inference.
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

# The same for adapters with descriptors, which measure how novel an image is.
router familiar(kind="soft", per="image") for adapter {
  input x: float[tokens, dim]
  input novelty: float[descriptors]
  gates = x -> gating(adapter, kind, per)
  record gates, novelty
  y = x -> adapter by gates over adapter
  output y
}
