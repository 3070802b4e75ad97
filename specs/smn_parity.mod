# Added modules (Hu et al., ICLR 2024, section 3.3): a trained smn.mod learns the parity of the asked digit from few
# labels. Its weights are frozen; `added` specialists and a new head are trained, and optionally the router.
model smn_parity(modules=2, added=2, iterations=4, balance=0.001, tune_router=false, bias=false, update="sum",
                 residual=false) {
  input  image: float[1, 28, 28]
  target label: class[2]

  frozen {
    tokenizer glimpses = conv(32, kernel=5) -> relu -> max_pool(2) -> conv(64, kernel=5) -> relu -> tokens
    pool      specialist[modules] = modulated_linear(384)
  }
  grow specialist[added]
  if tune_router {
    router agree = agreement(iterations, bias=bias, update=update, residual=residual)
  } else {
    frozen {
      router agree = agreement(iterations, bias=bias, update=update, residual=residual)
    }
  }

  parity = image -> glimpses -> specialist by agree -> mean -> linear(2)

  output parity
  loss cross_entropy(parity, label)
  loss balance * importance(agree, over="example")
}
