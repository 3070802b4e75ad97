# Scalable Modular Network: agreement routing (Hu et al., ICLR 2024), for the min-max digit game.
# The defaults follow the paper; the authors' code is bias=true, update="normalised", residual=true,
# over="batch", uncertainty=1.0.
model smn(modules=2, iterations=4, classes=10, balance=0.001, over="example", bias=false, update="sum",
          residual=false, uncertainty=0.0) {
  input  image: float[1, 28, 28]
  target label: class[classes]

  tokenizer glimpses = conv(32, kernel=5) -> relu -> max_pool(2) -> conv(64, kernel=5) -> relu -> tokens
  pool      specialist[modules] = modulated_linear(384)
  router    agree = agreement(iterations, bias=bias, update=update, residual=residual)

  logits = image -> glimpses -> specialist by agree -> mean -> linear(classes)

  output logits
  loss cross_entropy(logits, label)
  loss balance * importance(agree, over=over)
  if uncertainty > 0 {
    loss uncertainty * entropy(logits)
  }
}
