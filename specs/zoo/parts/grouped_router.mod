# The router of DeepSeek-V3 (2024): the best groups of experts, by the sums of their leading scores, and the k best experts
# of these. A bias counts in the choice alone. It rises where an expert gets fewer tokens than the mean, so loads become
# even without a loss. DeepSeek-V2 has softmax scores, and groups by their best expert.
router grouped_router(k, groups=1, near=1, softmax_scores=false, normalise=true, factor=1.0,
                      speed=0.001) for expert {
  input x: float[tokens, dim]
  require len(expert) % groups == 0 and near in 1..groups + 1
  state bias: float[expert] = zeros
  logits = x -> linear(expert, bias=false, name="gate")
  scores = logits -> sigmoid
  leading = 2
  if softmax_scores {
    scores = logits -> softmax
    leading = 1
  }
  biased = scores + bias
  if near < groups {
    grouped = biased -> unmerge([groups, len(expert) // groups], axis=expert, into=["group", ""])
    best = grouped * (grouped -> top_k(leading)) -> sum(axis=-1) -> top_k(near)
    open = best -> new_axis(len(expert) // groups, at=-1) -> merge(-2, -1, into=expert)
    biased = where(open, biased, -1000000000.0)
  }
  chosen = biased -> top_k(k)
  load = chosen -> batch_mean
  next bias = bias + speed * ((load -> mean(axis=expert)) - load -> sign)
  gates = chosen * scores
  if normalise {
    gates = gates / (gates -> sum(axis=expert))
  }
  gates = factor * gates
  record gates, scores, choice = chosen
  y = x -> expert by gates
  output y
}
