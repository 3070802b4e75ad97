# Graphs or their nodes, classified by layers that read what came from neighbours. A layer is a mixture of experts (Wang et
# al., Graph Mixture of Experts, NeurIPS 2023) or a single network: `kind` is "hops" for experts of neighbours and others
# of neighbours' neighbours, "neighbours" for experts that all read neighbours, "one" for one network that reads
# neighbours, and "both" for one that reads both. Widths inside are `inner`, so that sweeps can make costs equal.
block neighbourhood() {
  input x: float[node, dim]
  input link: edge[node, node]
  scale = 1 / sqrt((link -> degree) + 1)
  weights = ((scale, link) -> at_source) * ((scale, link) -> at_target)
  y = (x by weights over link) + scale**2 * x
  output y
}

block reads(far, inner, width) {
  input once: float[dim]
  input twice: float[dim]
  x = once
  if far {
    x = twice
  }
  y = x -> linear(inner) -> relu -> linear(width)
  output y
}

block layer(kind, inner, width, k) {
  input x: float[node, dim]
  input link: edge[node, node]
  once = (x, link) -> neighbourhood
  twice = (once, link) -> neighbourhood
  if kind == "one" {
    y = once -> linear(inner) -> relu -> linear(width)
  } else {
    if kind == "both" {
      y = (once, twice) -> concat -> linear(inner) -> relu -> linear(width)
    } else {
      far = kind == "hops"
      pool expert = [reads(false, inner, width), reads(false, inner, width), reads(far, inner, width),
                     reads(far, inner, width)]
      scores = x -> linear(expert, bias=false)
      noisy = scores + ((scores, x -> linear(expert, bias=false) -> softplus) -> normal_noise)
      gates = (noisy, noisy -> top_k(k)) -> masked_softmax
      y = (once, twice) -> expert by gates
      loss balance = 0.01 * importance(gates)
    }
  }
  output y
}

model graphs(kind="hops", of_nodes=false, features=10, width=32, inner=32, classes=2, layers=3, k=2) {
  input x: float[node, features]
  input link: edge[node, node]

  h = x * (link -> degree) -> linear(width)
  repeat layer[i] in 0..layers {
    h = h + ((h -> layer_norm, link) -> layer(kind, inner, width, k))
  }
  if of_nodes {
    target label: class[node, classes]
    logits = h -> layer_norm -> linear(classes)
    loss cross_entropy(logits, label, missing=true)
  } else {
    target label: class[classes]
    logits = h -> layer_norm -> mean(axis="node") -> linear(classes)
    loss cross_entropy(logits, label)
  }
  output logits
}
