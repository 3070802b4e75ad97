# Divide by the root mean square, and scale by one plus a learned vector, as in Gemma and Qwen3-Next.
block centred_norm(eps=0.000001) {
  input x: float[width]
  weight weight: float[width] = zeros
  output y = (1 + weight) * x / sqrt(mean(x * x, axis=-1) + eps)
}
