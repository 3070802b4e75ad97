# The gated delta rule (Yang, Kautz and Hatamizadeh, Gated Delta Networks, 2025) as in Qwen3-Next: the matrix of a head
# fades, then moves what it gives for a key towards a value. Heads of a group share queries and keys. The weights have
# the order of published ones: the linear maps by group, the filters by queries, keys and values.
block gated_delta(groups, members, keys, values, kernel=4, eps=0.000001) {
  input x: float[time, dim]
  weight rate: float[group=groups, member=members] = uniform(2)
  weight shift: float[group, member] = ones
  parts = [keys, keys, members * values, members * values]
  filters = groups * (2 * keys + members * values)

  q, k, v, z = x -> linear(groups * sum(parts), bias=false, name="qkvz")
      -> unmerge([groups, sum(parts)], into=["group", ""]) -> split(parts)
  beta, late = x -> linear(groups * 2 * members, bias=false, name="ba")
      -> unmerge([groups, 2 * members], into=["group", "member"]) -> split(2)
  beta = beta -> sigmoid
  fade = exp(0 - exp(rate) * softplus(late + shift))
  mixed = (q -> merge("group", -1), k -> merge("group", -1), v -> merge("group", -1)) -> concat
      -> conv1d(filters, kernel=kernel, padding="causal", groups=filters, bias=false, name="conv") -> silu
  q, k, v = mixed -> split([groups * keys, groups * keys, groups * members * values])
  q = q -> unmerge([groups, keys], into=["group", ""])
  k = k -> unmerge([groups, keys], into=["group", ""])
  v = v -> unmerge([groups, members * values], into=["group", ""])
  q = q / sqrt(keys * (sum(q * q, axis=-1) + 0.000001))
  k = k / sqrt(sum(k * k, axis=-1) + 0.000001)
  z = z -> unmerge([members, values], into=["member", "value"])

  scan (q, k, v, fade, beta) -> concat as t with s: float[group, member, value=values, key=keys] {
    query, key, value, kept, share = t -> split([keys, keys, members * values, members, members])
    key = key -> rename(["-1", "key"])
    s = (kept -> rename(["-1", "member"])) * s
    value = value -> unmerge([members, values], into=["member", "value"])
    change = (share -> rename(["-1", "member"])) * (value - ((s, key) -> contract(axis="key")))
    s = s + (change -> new_axis(keys, axis="key", at=-1)) * key
    yield (s, query -> rename(["-1", "key"])) -> contract(axis="key")
  } as read

  output y = (read -> rms_norm(eps, name="norm")) * (z -> silu) -> merge("group", "member", "value")
      -> linear(dim, bias=false, name="out")
}
