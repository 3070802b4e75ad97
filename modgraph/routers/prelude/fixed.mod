# Fill slot k with module k, whatever the input: the baseline without selection of Modular Networks (Kirsch et al.,
# NeurIPS 2018). The results of the slots are added, or put side by side along their first axis (combine="concat");
# dedupe, as of categorical, changes nothing, since no module fills two slots.
# Also called: none, identity.
router fixed(slots=1, combine="sum", dedupe=false) for p {
  require slots >= 1 and slots <= len(p)
  require combine in ["sum", "concat"]
  require combine == "sum" or not dedupe  # side by side, each slot has a place of its own
  require combine == "sum" or result_rank(p) > 0  # numbers have no axis to stand side by side along

  input x: float
  selected = x -> flatten(message_rank(p)) -> last(axis=-1) -> new_axis(p, at=-1) -> first_places(slots)
  scores = 10000 * (selected - 1)
  gates = selected -> sum(axis=-2)
  record gates, scores, selected: slots

  y = x
  if combine == "sum" {
    y = x -> p by gates
  } else {
    each = x -> new_axis(slots, at=-1 - message_rank(p))  # a slot is a sender of its own
    y = each -> p by selected -> merge(-1 - result_rank(p), -result_rank(p))
  }
  output y
}
