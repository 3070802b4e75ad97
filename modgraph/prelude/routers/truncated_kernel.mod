# Weight each pair of token and module by a kernel of the module's signature and the token's key (Rahaman et al., Neural
# Interpreters, 2021; a baseline of Hu et al., ICLR 2024): gates_ij = exp(-(1 - cos(signature_j, W x_i)) / bandwidth),
# and zero where 1 - cos exceeds the truncation. A module gives one vector, the mean over tokens of gates_ij f_j(x_i).
# The bandwidth is learned; its initial value is one.
# Also called: kernel, rbf.
router truncated_kernel(truncation=2.0, bias=false) for p {
  require truncation >= 0 and truncation <= 2  # a distance is 1 - cos
  input x: float[tokens, dim]
  weight weight: float[result_width(p), dim] = uniform(1 / sqrt(dim))
  weight signature: float[p, result_width(p)] = uniform(1 / sqrt(result_width(p)))
  weight bandwidth: float = ones

  key = (x, weight) -> contract
  if bias {
    weight bias: float[result_width(p)] = uniform(1 / sqrt(dim))
    key = key + bias
  }
  distance = 1 - ((key -> unit, signature -> unit) -> contract)
  gates = -distance / bandwidth -> exp
  if truncation < 2 {
    gates = gates * (distance <= truncation)
  }
  shares = 0 * gates -> softmax(axis=tokens)
  record gates
  y = x -> p by (gates * shares) over tokens
  output y
}
