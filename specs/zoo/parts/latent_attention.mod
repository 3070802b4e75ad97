# Latent attention (DeepSeek-V2, 2024): keys and values of all heads are linear maps of one small vector of a token, and
# one rotated key is shared by all heads. Arguments are named as in config.json, weights as in published files. Without
# q_lora_rank, queries are a map of the tokens. A factor above 1 scales positions (YaRN: Peng et al., 2023).
block latent_attention(heads, q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim,
                       rope_theta=10000.0, rope_interleave=true, factor=1.0, trained=4096, beta_fast=32.0,
                       beta_slow=1.0, mscale=0.0, mscale_all_dim=0.0) {
  input x: float[tokens, dim]
  size = qk_nope_head_dim + qk_rope_head_dim
  if q_lora_rank > 0 {
    queries = x -> linear(q_lora_rank, bias=false, name="q_a") -> rms_norm(name="q_a_norm")
        -> linear(heads * size, bias=false, name="q_b")
  } else {
    queries = x -> linear(heads * size, bias=false, name="q")
  }
  q, q_turned = queries -> unmerge([heads, size], into=["head", ""])
      -> split([qk_nope_head_dim, qk_rope_head_dim])
  c, k_turned = x -> rename(tokens="key") -> linear(kv_lora_rank + qk_rope_head_dim, bias=false, name="kv_a")
      -> split([kv_lora_rank, qk_rope_head_dim])
  k, v = c -> rms_norm(name="kv_a_norm")
      -> linear(heads * (qk_nope_head_dim + v_head_dim), bias=false, name="kv_b")
      -> unmerge([heads, qk_nope_head_dim + v_head_dim], into=["head", ""])
      -> split([qk_nope_head_dim, v_head_dim])

  if rope_interleave {
    q_turned = q_turned -> unmerge([qk_rope_head_dim // 2, 2]) -> transpose -> merge
    k_turned = k_turned -> unmerge([qk_rope_head_dim // 2, 2]) -> transpose -> merge
  }
  if factor == 1 {
    q_turned = q_turned -> rotary(rope_theta, axis=tokens)
    k_turned = k_turned -> rotary(rope_theta, axis=key)
  } else {
    # Number i makes radians · exp(−i / step) / 2π cycles; the scaling fades out from first to last, whole numbers.
    step = qk_rope_head_dim / (2 * log(rope_theta))
    radians = trained / 6.283185307179586
    first = max(0, floor(step * log(radians / beta_fast)))
    last = max(min(qk_rope_head_dim - 1, -floor(-step * log(radians / beta_slow))), first + 0.001)
    cycles = [radians * exp(-last / step), radians * exp(-first / step)]
    q_turned = q_turned
        -> rotary(rope_theta, scaled=factor, trained=trained, cycles=cycles, fade="logarithmic", axis=tokens)
    k_turned = k_turned
        -> rotary(rope_theta, scaled=factor, trained=trained, cycles=cycles, fade="logarithmic", axis=key)
  }
  strength = 0.1 * log(factor) + 1
  if mscale > 0 and mscale_all_dim > 0 {
    strength = (0.1 * mscale * log(factor) + 1) / (0.1 * mscale_all_dim * log(factor) + 1)
  }
  scale = (0.1 * mscale_all_dim * log(factor) + 1)**2 / sqrt(size)

  scores = scale * (((q, k) -> contract) + ((q_turned * strength**2, k_turned) -> contract))
  past = (x -> positions(axis=tokens)) >= (c -> positions(axis=key))
  gates = (scores, past) -> masked_softmax(axis=key)
  output v by gates over key -> merge("head", -1) -> linear(dim, bias=false, name="out")
}
