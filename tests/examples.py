"""One small spec for every op and router: each uses the thing it is listed under exactly once."""

from __future__ import annotations

HEAD = "model m() {{ {inputs} y = {value} output y }}"


def _of(value: str, inputs: str = "input x: float[5, 6]") -> str:
    return HEAD.format(inputs=inputs, value=value)


IMAGE = "input x: float[4, 8, 6]"

OP_EXAMPLES: dict[str, str] = {
    "add": _of("x + x"),
    "attention": _of("x -> attention(2)"),
    "avg_pool": _of("x -> avg_pool(2)", IMAGE),
    "batch_norm": _of("x -> batch_norm", IMAGE),
    "class_token": _of("x -> class_token"),
    "concat": _of("(x, x) -> concat"),
    "conv": _of("x -> conv(6, kernel=3, stride=2, padding=1, groups=2)", IMAGE),
    "cross_entropy": _of(
        "x -> relu target label: class[5, 6] loss cross_entropy(y, label)",
    ),
    "divide": _of("1 / x", "input x: float[5]"),
    "dropout": _of("x -> dropout(0.5)"),
    "elu": _of("x -> elu"),
    "embedding": _of("x -> embedding(4)", "input x: token[7, 11]"),
    "entropy": _of("x -> relu loss entropy(x)"),
    "flatten": _of("x -> flatten"),
    "gelu": _of("x -> gelu"),
    "group_norm": _of("x -> group_norm(2)", IMAGE),
    "identity": _of("x -> identity"),
    "importance": _of(
        "x -> p by r loss importance(r)", "input x: float[5, 6] pool p[3] = linear(4) router r = agreement(2)"
    ),
    "layer_norm": _of("x -> layer_norm"),
    "leaky_relu": _of("x -> leaky_relu"),
    "linear": _of("x -> linear(3)"),
    "log_softmax": _of("x -> log_softmax"),
    "max": _of("x -> max"),
    "max_pool": _of("x -> max_pool(3, stride=2)", IMAGE),
    "mean": _of("x -> mean"),
    "modulated_linear": _of("x -> modulated_linear(3)"),
    "modulated_mlp": _of("x -> modulated_mlp([7, 3])"),
    "mse": _of("x -> relu target t: float[5, 6] loss mse(y, t)"),
    "multiply": _of("2 * x"),
    "patch_embed": _of("x -> patch_embed(2, 5)", IMAGE),
    "position": _of("x -> position"),
    "power": _of("x ** 2"),
    "relu": _of("x -> relu"),
    "rms_norm": _of("x -> rms_norm"),
    "scale": _of("x -> scale"),
    "select": _of("x -> select(1)"),
    "sigmoid": _of("x -> sigmoid"),
    "silu": _of("x -> silu"),
    "softmax": _of("x -> softmax"),
    "softplus": _of("x -> softplus"),
    "split": "model m() { input x: float[5, 6] y, z = x -> split(2) output y output z }",
    "subtract": _of("x - 1"),
    "sum": _of("x -> sum"),
    "tanh": _of("x -> tanh"),
    "tokens": _of("x -> tokens", IMAGE),
}

ROUTER_EXAMPLES: dict[str, str] = {
    "every_module": _of("x -> p", "input x: float[5, 6] pool p[3] = linear(4)"),
    "agreement": _of("x -> p by r", "input x: float[5, 6] pool p[3] = linear(4) router r = agreement(2)"),
}

TRANSFORMER = """
model tiny(dim=8, depth=2, sparse=[1]) {
  input  image: float[3, 8, 8]
  target label: class[5]
  x = image -> patch_embed(4, dim) -> class_token -> position
  repeat blocks[i] in 0..depth {
    x = x + (x -> layer_norm -> attention(2))
    if i in sparse {
      pool   expert[3] = linear(2 * dim) -> gelu -> linear(dim)
      router agree = agreement(2)
      x = x + (x -> layer_norm -> expert by agree -> mean -> dropout(0.5))
    } else {
      x = x + (x -> layer_norm -> linear(4 * dim) -> gelu -> linear(dim))
    }
  }
  logits = x -> layer_norm -> select(0) -> linear(5)
  output logits
  loss cross_entropy(logits, label)
  loss 0.01 * importance(agree)
}
"""

SEQUENCE = """
model sequence(width=6) {
  input  words: token[time, 20]
  target label: class[3]
  pool   p[2] = linear(width)
  router r = agreement(2)
  x = words -> embedding(width) -> attention(2)
  s = x -> p by r -> mean
  logits = (x -> mean, x -> max, s) -> concat -> linear(3)
  output logits
  loss cross_entropy(logits, label)
}
"""
