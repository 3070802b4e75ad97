# Graph attention (Veličković et al., 2018): a node attends to its neighbours, by scores that add a share of both ends.
block attend(heads, width) {
  input x: float[node, dim]
  input edge: float[node, neighbour]
  h = x -> linear(heads * width, bias=false) -> unmerge([heads, width], into=["head", ""])
  weight own: float[head=heads, width] = xavier_uniform
  weight other: float[head=heads, width] = xavier_uniform
  near = h -> rename(node="neighbour")
  left = (h, own) -> contract -> new_axis(len(node), axis=neighbour, at=-2)
  scores = left + ((near, other) -> contract) -> leaky_relu(0.2)
  gates = (scores, edge) -> masked_softmax(axis=neighbour)
  output y = near by gates over neighbour
}

model graph_attention(classes=3) {
  input  x: float[node=6, 5]
  target label: class[node, classes]
  constant edge: float[node, neighbour=6] = [[1, 1, 0, 0, 0, 1], [1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0],
      [0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 0, 1, 1]]
  h = (x, edge) -> attend(heads=4, width=2) -> merge("head", -1) -> elu
  logits = (h, edge) -> attend(heads=2, width=classes) -> mean(axis="head")
  output logits
  loss cross_entropy(logits, label)
}
