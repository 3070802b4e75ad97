# Graph attention networks (Veličković et al., ICLR 2018), on Zachary's karate club. The softmax of a node runs over its
# edges and itself.
block graph_attention(heads, width) {
  input x: float[node, dim]
  input link: edge[node, node]
  h = x -> linear(heads * width, bias=false) -> unmerge([heads, width], into=["head", ""])
  weight source: float[head=heads, width] = xavier_uniform
  weight destination: float[head=heads, width] = xavier_uniform
  from_source = h * source -> sum(axis=-1)
  to_target = h * destination -> sum(axis=-1)
  scores = ((from_source, link) -> at_source) + ((to_target, link) -> at_target) -> leaky_relu(slope=0.2)
  own = from_source + to_target -> leaky_relu(slope=0.2)
  largest = maximum((scores, link) -> aggregate("max"), own) -> stop_gradient
  powers = exp(scores - ((largest, link) -> at_target))
  power = exp(own - largest)
  total = ((powers, link) -> aggregate) + power
  y = ((h by powers over link) + power * h) / total
  output y  # [node, head, width]
}

model gat(features=34, hidden=8, heads=8, classes=4, drop=0.5) {
  input  x: float[node, features]
  input  link: edge[node, node]
  target label: class[node, classes]

  h = (x -> dropout(drop), link) -> graph_attention(heads, hidden) -> merge(-2, -1) -> elu
  logits = (h -> dropout(drop), link) -> graph_attention(1, classes) -> select(0, axis=-2)

  output logits
  loss cross_entropy(logits, label, missing=true)
}
