# Modules and tokens agree, over some iterations, on which token goes to which module (Hu et al., Scalable Modular
# Network, ICLR 2024, Algorithm 1). A module's vector v_j starts as the mean over tokens of f_j(x_i). Each iteration
# computes scores_ij += cos(W x_i, v_j), gates_ij = softmax of scores_ij over modules, and v_j = sum_i gates_ij
# f_j(x_i); update="normalised" divides v_j by sum_i gates_ij. The result is the last v_j; with residual=true it is
# relu(initial v_j + last v_j).
# Also called: routing_by_agreement, dynamic_routing, capsule.
router agreement(iterations=4, bias=false, update="sum", residual=false) for p {
  require iterations >= 0 and iterations <= 1000 and update in ["sum", "normalised"]
  input x: float[tokens, dim]
  weight weight: float[result_width(p), dim] = uniform(1 / sqrt(dim))
  key = x
  if iterations > 0 {
    key = (x, weight) -> contract
  }
  if bias {
    weight bias: float[result_width(p)] = uniform(1 / sqrt(dim))
    if iterations > 0 {
      key = key + bias
    }
  }
  key = key -> unit
  even = 0 * (x -> positions(axis=tokens)) -> softmax(axis=tokens)
  v = x -> p by even over tokens  # the mean
  first = v
  scores = 0
  if iterations == 0 {
    none = 0 * (x -> sum(axis=-1)) -> new_axis(p, at=-1)
    record gates = none + 1 / len(p), scores = none
  }
  repeat round[t] in 0..iterations {
    scores = scores + ((key, v -> unit) -> contract)
    gates = scores -> softmax(axis=p)
    record gates, scores
    v = x -> p by gates over tokens
    if update == "normalised" {
      total = gates -> sum(axis=tokens)
      v = v * (1 / where(total > 0, total + 1e-8, 1))
    }
  }
  if residual and iterations > 0 {
    v = first + v -> relu
  } else if residual {
    v = v -> relu
  }
  output v
}
