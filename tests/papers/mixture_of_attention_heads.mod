# Mixture of attention heads (Zhang et al., 2022): a token chooses k of many heads, which share their keys and values.
model mixture_of_attention_heads(dim=16, heads=8, k=2, head=4) {
  input  x: float[time, dim]
  target y: float[time, dim]
  pool query[heads] = linear(head, bias=false)
  pool out[query] = linear(dim, bias=false)

  logits = x -> linear(query, bias=false)
  p = logits -> softmax
  best = p -> top_k_indices(k, into="slot") -> one_hot(query)
  total = p * (p -> top_k(k)) -> sum(axis=query) -> stop_gradient

  keys = x -> rename(time="key")
  q = x -> query by best
  scores = ((q, keys -> linear(head, bias=false)) -> contract) / sqrt(head)
  h = keys -> linear(head, bias=false) by (scores -> softmax(axis="key")) over key
  z = h -> out by (best * p / total) -> sum(axis="slot")

  output z
  loss mse(z, y)
  chosen = p -> top_k(k) -> batch_mean
  loss balance = 0.01 * heads * (chosen * (p -> batch_mean) -> sum(axis=query))
  loss large = 0.001 * ((logits -> logsumexp(axis=query))**2 -> mean(axis="time"))
}
