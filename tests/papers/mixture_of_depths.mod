# Mixture of depths (Raposo et al., 2024): of each sequence the k tokens with the largest score go through the block.
block transformer(dim) {
  input x: float[tokens, dim]
  h = x -> layer_norm -> attention(2, causal=true)
  y = h + (x + h -> layer_norm -> linear(4 * dim) -> gelu -> linear(dim))
  output y
}

model mixture_of_depths(dim=16, k=8) {
  input  x: float[time, dim]
  target y: float[time, dim]
  weight score: float[dim] = normal(0.1)
  scores = (x, score) -> contract
  place = scores -> top_k(k) -> dispatch(k, into="slot")
  taken = x by place over time
  z = x + sigmoid(scores) * ((taken -> transformer(dim)) by place over slot)
  output z
  loss mse(z, y)
}
