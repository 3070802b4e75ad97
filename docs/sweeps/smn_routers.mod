# specs/smn.mod with the two routers that its paper compares rounds of agreement with
model smn(modules=2, classes=10, balance=0.001, over="example", routing="noisy") {
  require routing in ["noisy", "kernel"]
  input  image: float[1, 28, 28]
  target label: class[classes]

  tokenizer glimpses = conv(32, kernel=5) -> relu -> max_pool(2) -> conv(64, kernel=5) -> relu -> tokens
  pool      specialist[modules] = modulated_linear(384)
  if routing == "noisy" {
    router agree = noisy_top_k(1)
  } else {
    router agree = truncated_kernel()
  }

  logits = image -> glimpses -> specialist by agree -> mean -> linear(classes)

  output logits
  loss cross_entropy(logits, label)
  loss balance * importance(agree, over=over)
  if routing == "noisy" {
    loss balance * load(agree)
  }
}
