# Send each token to the k modules with the largest logits, which have noise in training (Shazeer et al., 2017; a
# baseline of Hu et al., ICLR 2024): H = Wg x + eps (softplus(Wn x) + 0.01) with normal eps. Of equal logits the first
# counts as larger. The weights are the softmax over the k modules. With k = 1 that weight is one, so only balance
# losses train the router; softmax="before_top_k" weights by the softmax over all modules, which the task trains. With
# noise the load is smooth; without noise, and in evaluation, it counts the tokens of each module.
# Also called: top_k, topk, sparse, moe.
router noisy_top_k(k=1, noise=true, softmax="after_top_k") for p {
  require k >= 1 and softmax in ["after_top_k", "before_top_k"]
  input x: float[tokens, dim]
  weight weight: float[p, dim] = zeros
  weight noise_weight: float[p, dim] = zeros
  scores = (x, weight) -> contract
  noisy = scores
  deviation = 0.0
  if noise {
    deviation = ((x, noise_weight) -> contract -> softplus) + 0.01
    noisy = scores + ((scores, deviation) -> normal_noise)
  }
  chosen = noisy -> top_k(k)
  gates = (noisy, chosen) -> masked_softmax
  if softmax == "before_top_k" {
    gates = (noisy -> softmax) * chosen
  }
  load = chosen
  if noise and k < len(p) {
    others = where(chosen, noisy -> kth_largest(k + 1), noisy -> kth_largest(k))
    stay = 0.5 * (1 + ((scores - others) / deviation / sqrt(2) -> erf))
    load = (stay, chosen) -> training_or_inference
  }
  record gates, scores: logits, selected: choice = chosen, load
  y = x -> p by gates
  output y
}
