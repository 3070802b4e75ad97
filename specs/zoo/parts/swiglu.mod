# SwiGLU (Shazeer, GLU Variants Improve Transformer, 2020): a linear map of the product of a gate, with SiLU, and another
# linear map. The names are those of published weights.
block swiglu(dim, hidden) {
  input x: float[tokens, dim]
  h = (x -> linear(hidden, bias=false, name="gate") -> silu) * (x -> linear(hidden, bias=false, name="up"))
  y = h -> linear(dim, bias=false, name="down")
  output y
}
