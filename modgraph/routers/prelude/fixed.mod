# Fill slot k with module k, whatever the input: the baseline without selection of Modular Networks (Kirsch et al., NeurIPS
# 2018). The results of the slots are added, or put side by side along their first axis (combine="concat"); dedupe changes
# nothing, since no module fills two slots.
# Also called: none, identity.
router fixed(slots=1, combine="sum", dedupe=false) for p {
  input x: float
  selected = x -> flatten(message_rank(p)) -> last(axis=-1) -> new_axis(p, at=-1) -> first_places(slots)
  scores = 10000 * (selected - 1)
  gates = selected -> sum(axis=-2)
  record gates, scores, selected: slots

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
