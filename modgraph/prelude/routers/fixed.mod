# Fill slot k with module k for every input: the baseline without selection of Modular Networks (Kirsch et al., NeurIPS
# 2018). The results of the slots are summed, or concatenated along their first axis (combine="concat"). dedupe exists
# as in categorical and has no effect, since no module fills two slots.
# Also called: none, identity.
router fixed(slots=1, combine="sum", dedupe=false) for p {
  require slots >= 1 and slots <= len(p)
  require combine in ["sum", "concat"]
  require combine == "sum" or not dedupe  # concatenated slots have places of their own
  require combine == "sum" or result_rank(p) > 0  # numbers have no axis to concatenate along

  input x: float
  selected = x -> flatten(message_rank(p)) -> last(axis=-1) -> new_axis(p, at=-1) -> first_places(slots)
  scores = 10000 * (selected - 1)
  gates = selected -> sum(axis=-2)
  record gates, scores, selected: slots

  y = x
  if combine == "sum" {
    y = x -> p by gates
  } else {
    each = x -> new_axis(slots, at=-1 - message_rank(p))  # each slot is a token of its own
    y = each -> p by selected -> merge(-1 - result_rank(p), -result_rank(p))
  }
  output y
}
