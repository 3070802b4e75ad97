# Graph convolutional networks (Kipf and Welling, Semi-Supervised Classification with Graph Convolutional Networks,
# ICLR 2017), on Zachary's karate club. A node is joined to itself too, which is the second term of each sum.
block graph_conv(width) {
  input x: float[node, dim]
  input link: edge[node, node]
  scale = 1 / sqrt((link -> degree) + 1)
  weights = ((scale, link) -> at_source) * ((scale, link) -> at_target)
  h = x -> linear(width, bias=false)
  weight bias: float[width] = zeros
  y = (h by weights over link) + scale**2 * h + bias
  output y
}

model gcn(features=34, hidden=16, classes=4, drop=0.5) {
  input  x: float[node, features]
  input  link: edge[node, node]
  target label: class[node, classes]

  h = (x, link) -> graph_conv(hidden) -> relu -> dropout(drop)
  logits = (h, link) -> graph_conv(classes)

  output logits
  loss cross_entropy(logits, label, missing=true)
}
