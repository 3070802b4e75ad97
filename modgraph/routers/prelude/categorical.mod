# Draw a module for each slot from a distribution over the pool; in inference take the most probable (Modular Networks:
# Kirsch et al., NeurIPS 2018). log p = log softmax(W x + b) of each slot, x the whole message as one vector, of any rank;
# with controller="conv" the mean over the image of relu(convolution). The results of the slots are added, or put side by
# side along their first axis (combine="concat"); with dedupe a module that fills several slots counts once in the sum.
# The choice passes no gradient: train with the algorithm em or reinforce.
# Also called: gumbel, sample, reinforce.
router categorical(slots=1, combine="sum", dedupe=false, controller="linear", channels=16, kernel=3) for p {
  input x: float
  features = x -> flatten(message_rank(p))
  width = message_width(p)
  if controller == "conv" {
    if message_rank(p) != 3 {
      features = fail("controller=\"conv\" looks at images [channels, height, width]: use controller=\"linear\"")
    }
    width = channels
    features = x -> conv(channels, kernel, padding="same", name="conv") -> relu -> flatten(2) -> mean(axis=-1)
  } else if controller != "linear" {
    features = fail("controller is \"linear\" or \"conv\"")
  }
  weight weight: float[slots, p, width] = uniform(1 / sqrt(width))
  weight bias: float[slots, p] = zeros
  scores = ((features, weight) -> contract) + bias -> log_softmax
  selected = scores -> draw
  gates = selected -> sum(axis=-2)
  if dedupe {
    gates = selected -> max(axis=-2)
  }
  record gates, scores: log_probabilities, selected: slots

  y = x
  if combine == "sum" {
    y = x -> p by gates
  } else if combine == "concat" and dedupe {
    y = fail("dedupe goes with a sum: side by side, each slot has a place of its own")
  } else if combine == "concat" and result_rank(p) == 0 {
    y = fail("numbers cannot be put side by side: use combine=\"sum\"")
  } else if combine == "concat" {
    each = x -> new_axis(slots, at=-1 - message_rank(p))
    y = each -> p by selected -> merge(-1 - result_rank(p), -result_rank(p))
  } else {
    y = fail("combine is \"sum\" or \"concat\"")
  }
  output y
}
