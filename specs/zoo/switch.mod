# Switch Transformer (Fedus et al., JMLR 2022), as a language model of T5's blocks. In every second block, each token
# goes to one expert, weighted by its probability. In training an expert takes the first `capacity` times its even share
# of tokens; the others skip it. The paper's jitter of the router's input is left out.
model switch(vocabulary=1000, dim=32, hidden=64, depth=2, heads=4, experts=4, capacity=1.25, balance=0.01) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]

  x = words -> embedding(dim, init=normal(0.02))
  repeat blocks[i] in 0..depth {
    x = x + (x -> rms_norm -> attention(heads, causal=true, relative=32, bias=false, out_bias=false))
    h = x -> rms_norm
    if i % 2 == 1 {
      pool expert[experts] = linear(hidden, bias=false) -> relu -> linear(dim, bias=false)

      probabilities = h -> linear(expert, bias=false) -> softmax
      chosen = probabilities -> top_k
      kept = (chosen, chosen) -> within_capacity(capacity)  # of equal scores the first
      x = x + (h -> expert by (probabilities * kept))
      loss balance[i] = balance * experts * sum(batch_mean(chosen) * batch_mean(probabilities), axis=-1)
    } else {
      module dense = linear(hidden, bias=false) -> relu -> linear(dim, bias=false)

      x = x + (h -> dense)
    }
  }
  logits = x -> rms_norm -> linear(vocabulary, bias=false)

  output logits
  loss cross_entropy(logits, next)
}
