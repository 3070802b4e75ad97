# Hash layers (Roller et al., 2021): a given table says which module each word goes to; nothing learns to route.
model hash_layer(vocabulary=12, width=8, hidden=16, experts=4, table=[0, 3, 1, 2, 2, 0, 3, 1, 1, 2, 0, 3]) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]
  constant module_of: token[vocabulary, experts] = table
  pool expert[experts] = linear(hidden) -> relu -> linear(width)

  x = words -> embedding(width)
  h = x + (x -> attention(2, causal=true)) -> layer_norm
  choice = (module_of, words) -> lookup -> one_hot(expert)
  y = h + (h -> expert by choice) -> layer_norm
  logits = y -> linear(vocabulary)

  output logits
  loss cross_entropy(logits, next)
}
