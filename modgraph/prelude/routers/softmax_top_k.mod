# Gates and load of routers that weight the k largest of noisy scores by their share of a softmax over all modules.
block k_by_softmax(modules, k, noise, load, capacity, priority) {
  input scores: float[m]
  noisy = scores
  if noise > 0 {
    noisy = scores + (scores -> normal_noise(noise))
  }
  chosen = noisy -> top_k(k)
  shares = noisy -> softmax
  gates = shares * chosen
  if k > 1 {
    gates = (noisy, chosen) -> masked_softmax
  }

  score = scores
  if load == "code" {
    score = scores -> softmax
  }
  likely = chosen
  if noise > 0 and load == "kth_of_others" {
    likely = (score, noisy, chosen) -> chance_to_stay(modules, k, noise)
  } else if noise > 0 {
    likely = (score - (noisy -> kth_largest(k))) / noise -> normal_cdf
  }

  if capacity > 0 {
    chosen = (shares, chosen) -> within_capacity(capacity, k=k, priority=priority)
    gates = gates * chosen
  }
  output gates
  output chosen
  output likely
}

# The probability that a module is among the k largest if only its own noise is sampled again.
block chance_to_stay(modules, k, deviation) {
  input scores: float[m]
  input noisy: float[m]
  input chosen: float[m]
  chance = chosen
  if k < modules {
    others = where(chosen, noisy -> kth_largest(k + 1), noisy -> kth_largest(k))
    chance = (scores - others) / deviation -> normal_cdf
  }
  output chance
}

block normal_cdf() {
  input x: float
  y = 0.5 * (1 + (x / sqrt(2) -> erf))
  output y
}

# Send each token to the k modules with the largest logits W x, which have noise in training. Gates are the softmax over
# all modules; with k > 1 they are renormalised to sum to one. Of equal logits the first is chosen. The load is the
# probability that a token chooses a module: load="paper" is 1 - Phi((k-th largest - logit) / noise) (Li et al., ICLR
# 2023, equation 10), "kth_of_others" the probability to stay among the k largest, "code" what the authors' program
# computes. In training a module takes at most k int(capacity ceil(tokens / modules)) tokens, in the order of priority
# (see within_capacity); capacity=0 means any number.
# Also called: switch, softmax.
router linear(k=1, noise=0.0, load="paper", capacity=0.0, priority="score") for p {
  require k >= 1 and noise >= 0 and capacity >= 0
  require load in ["paper", "kth_of_others", "code"] and priority in ["score", "first_choice"]
  input x: float[tokens, dim]
  weight weight: float[p, dim] = uniform(1 / sqrt(dim))
  scores = (x, weight) -> contract
  gates, chosen, likely = scores -> k_by_softmax(len(p), k, noise, load, capacity, priority)
  record gates, scores: logits, selected: choice = chosen, load = likely, probabilities = scores -> softmax
  y = x -> p by gates
  output y
}

# Send each token to the k modules whose keys have the largest cosine with the token's query (GMoE: Li et al., ICLR
# 2023, section 4.3). Logits are cos(W x + b, key_j) exp(min(scale, log 100)); everything else is as in linear. The
# authors' code uses priority="first_choice" (batch prioritised routing), which is equivalent for k = 1.
# Also called: gmoe.
router cosine(k=1, noise=0.0, load="paper", capacity=0.0, priority="score", width=256) for p {
  require k >= 1 and noise >= 0 and capacity >= 0 and width >= 1
  require load in ["paper", "kth_of_others", "code"] and priority in ["score", "first_choice"]
  input x: float[tokens, dim]
  weight weight: float[width, dim] = uniform(1 / sqrt(dim))
  weight bias: float[width] = uniform(1 / sqrt(dim))
  weight keys: float[width, p] = normal(0.01)
  weight scale: float = constant(log(2))
  query = ((x, weight) -> contract) + bias -> unit
  scores = ((query, keys -> unit(axis=-2) -> transpose) -> contract) * exp(minimum(scale, log(100)))
  gates, chosen, likely = scores -> k_by_softmax(len(p), k, noise, load, capacity, priority)
  record gates, scores: logits, selected: choice = chosen, load = likely, probabilities = scores -> softmax
  y = x -> p by gates
  output y
}
