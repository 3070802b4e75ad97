# Sample a module for each slot from a distribution over the pool; in inference take the most probable one (Modular
# Networks: Kirsch et al., NeurIPS 2018). log p = log softmax(W x + b) of each slot, where x is the whole message,
# flattened to a vector; with controller="conv" x is the mean over the image of relu(convolution). The results of the
# slots are summed, or concatenated along their first axis (combine="concat"). With dedupe the sum counts a module once
# if it fills several slots. The choice passes no gradient: train with the algorithm em or reinforce.
# Also called: gumbel, sample, reinforce.
router categorical(slots=1, combine="sum", dedupe=false, controller="linear", channels=16, kernel=3) for p {
  require slots >= 1 and channels >= 1 and kernel >= 1
  require combine in ["sum", "concat"] and controller in ["linear", "conv"]
  require combine == "sum" or not dedupe  # concatenated slots have places of their own
  require controller == "linear" or message_rank(p) == 3  # an image has channels, height and width
  require combine == "sum" or result_rank(p) > 0  # numbers have no axis to concatenate along

  input x: float
  features = x -> flatten(message_rank(p))
  width = message_width(p)
  if controller == "conv" {
    features = x -> conv(channels, kernel, padding="same", name="conv") -> relu -> flatten(2) -> mean(axis=-1)
    width = channels
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
  } else {
    each = x -> new_axis(slots, at=-1 - message_rank(p))  # each slot is a token of its own
    y = each -> p by selected -> merge(-1 - result_rank(p), -result_rank(p))
  }
  output y
}
