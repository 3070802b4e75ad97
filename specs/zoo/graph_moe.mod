# A mixture of experts on graphs (Wang et al., Graph Mixture of Experts: Learning on Large-Scale Graphs with Explicit
# Diversity Modeling, NeurIPS 2023), to classify graphs. Some experts see a node's neighbours, others those of
# neighbours too, and each node chooses k of all. The scores carry noise in training (Shazeer et al., ICLR 2017).
block one_hop(width) {
  input once: float[dim]
  input twice: float[dim]
  y = once -> linear(width)
  output y
}

block two_hops(width) {
  input once: float[dim]
  input twice: float[dim]
  y = twice -> linear(width)
  output y
}

block neighbourhood() {
  input x: float[node, dim]
  input link: edge[node, node]
  scale = 1 / sqrt((link -> degree) + 1)
  weights = ((scale, link) -> at_source) * ((scale, link) -> at_target)
  y = (x by weights over link) + scale**2 * x
  output y
}

block experts_by_hops(width, k=2) {
  input x: float[node, dim]
  input link: edge[node, node]
  pool expert = [one_hop(width), one_hop(width), two_hops(width), two_hops(width)]
  once = (x, link) -> neighbourhood
  twice = (once, link) -> neighbourhood
  scores = x -> linear(expert, bias=false)
  noisy = scores + ((scores, x -> linear(expert, bias=false) -> softplus) -> normal_noise)
  gates = (noisy, noisy -> top_k(k)) -> masked_softmax
  y = (once, twice) -> expert by gates
  output y
  loss balance = 0.01 * importance(gates)
}

model graph_moe(features=10, hidden=32, classes=2, layers=3, k=2) {
  input  x: float[node, features]
  input  link: edge[node, node]
  target label: class[classes]

  h = x * (link -> degree) -> linear(hidden)
  repeat layer[i] in 0..layers {
    h = h + ((h -> layer_norm, link) -> experts_by_hops(hidden, k=k) -> relu)
  }
  logits = h -> mean(axis="node") -> linear(classes)

  output logits
  loss cross_entropy(logits, label)
}
