# A small language model: a mixture of experts with 1.4 million active parameters, which trains on two cores in ten
# minutes. With experts=1 it is the dense model of the same active MACs.
import swiglu from "zoo/parts/swiglu.mod"

model story(vocabulary=2048, width=128, hidden=192, depth=4, heads=4, experts=8, k=2, balance=0.01) {
  input  words: token[time, vocabulary]
  target next: class[time, vocabulary]

  x = words -> embedding(width, init=normal(0.02))
  repeat blocks[i] in 0..depth {
    x = x + (x -> rms_norm -> attention(heads, causal=true, rotary=10000.0, bias=false, out_bias=false))
    h = x -> rms_norm
    if experts > 1 {
      pool expert[experts] = swiglu(width, hidden)

      scores = h -> linear(expert, bias=false, name="router")
      chosen = scores -> top_k(k)
      x = x + (h -> expert by ((scores, chosen) -> masked_softmax))
      loss balance[i] = balance * experts * sum(batch_mean(chosen) * batch_mean(scores -> softmax), axis=-1)
    } else {
      module dense = swiglu(width, k * hidden)

      x = x + (h -> dense)
    }
  }
  logits = x -> rms_norm -> linear(vocabulary, bias=false)

  require causal(logits, words)
  output logits
  loss cross_entropy(logits, next)
}
