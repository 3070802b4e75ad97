# A decoder-only transformer on words. With `experts` = 1 its feed-forward layers are plain; with more, each word goes to
# the k experts of the highest scores, weighted by a softmax over these (Mixtral: Jiang et al., 2024), with the balance
# loss of Switch (Fedus et al., JMLR 2022). No expert is ever full, so the route of a word depends on no later word and on
# no other text of the batch.
model language(vocabulary=2000, dim=64, hidden=256, depth=2, heads=4, experts=1, k=2, balance=0.01) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]

  x = words -> embedding(dim, init=normal(0.02))
  repeat blocks[i] in 0..depth {
    x = x + (x -> rms_norm -> attention(heads, causal=true, rotary=10000.0, bias=false, out_bias=false))
    h = x -> rms_norm
    if experts > 1 {
      pool expert[experts] = linear(hidden, bias=false) -> gelu -> linear(dim, bias=false)

      scores = h -> linear(expert, bias=false, name="router")
      chosen = scores -> top_k(k)
      x = x + (h -> expert by ((scores, chosen) -> masked_softmax))
      loss balance[i] = balance * experts * sum(batch_mean(chosen) * batch_mean(scores -> softmax), axis=-1)
    } else {
      module dense = linear(hidden, bias=false) -> gelu -> linear(dim, bias=false)

      x = x + (h -> dense)
    }
  }
  logits = x -> rms_norm -> linear(vocabulary, bias=false)

  output logits
  loss cross_entropy(logits, next)
}
