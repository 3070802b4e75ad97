# gpt-oss (OpenAI, gpt-oss-120b and gpt-oss-20b Model Card, 2025): windows in every other layer, a sink for each head,
# positions by YaRN, and clamped experts. Its parameters have the names in the config.json of published weights, which
# gpt_oss_hub.yaml maps.
block sink_attention(heads, groups, width, window, bias, theta, factor, trained, cycles) {
  input x: float[time, dim]
  require heads % groups == 0
  weight sinks: float[group=groups, member=heads // groups] = normal(0.02)
  past = x -> rename(time="key")
  queries = x -> linear(heads * width, bias=bias, name="q")
      -> unmerge([groups, heads // groups, width], into=["group", "member", ""])
      -> rotary(theta, scaled=factor, trained=trained, cycles=cycles, fade="logarithmic", axis=time)
  keys = past -> linear(groups * width, bias=bias, name="k") -> unmerge([groups, width], into=["group", ""])
      -> rotary(theta, scaled=factor, trained=trained, cycles=cycles, fade="logarithmic", axis=key)
  values = past -> linear(groups * width, bias=bias, name="v") -> unmerge([groups, width], into=["group", ""])
  back = (x -> positions(axis=time)) - (past -> positions(axis=key))
  visible = back >= 0
  if window > 0 {
    visible = visible * (back < window)
  }
  scores = (1 + 0.1 * log(factor))**2 / sqrt(width) * ((queries, keys) -> contract)
  gates = (scores, visible, sinks) -> masked_softmax(axis=key)
  output y = values by gates over key -> merge("group", "member", -1) -> linear(dim, bias=bias, name="out")
}

block clamped_swiglu(dim, hidden, alpha, limit) {
  input x: float[tokens, dim]
  h = x -> linear(hidden, name="gate") -> clamp(max=limit)
  u = x -> linear(hidden, name="up") -> clamp(min=-limit, max=limit)
  output y = (u + 1) * h * sigmoid(alpha * h) -> linear(dim, name="down")
}

model gpt_oss(vocab_size=1000, hidden_size=32, intermediate_size=32, num_hidden_layers=2, layer_types=[],
              num_attention_heads=4, num_key_value_heads=2, head_dim=16, sliding_window=16,
              attention_bias=true, rope_theta=150000.0, rope_factor=32.0,
              original_max_position_embeddings=4096, rope_beta_fast=32.0, rope_beta_slow=1.0,
              num_local_experts=8, num_experts_per_tok=4, swiglu_alpha=1.702, swiglu_limit=7.0,
              rms_norm_eps=0.00001, router_aux_loss_coef=0.001) {
  require len(layer_types) in [0, num_hidden_layers]
  require original_max_position_embeddings > 6.2832 * rope_beta_fast  # as in the code of YaRN
  input  words: token[time, vocab_size]
  target next: class[time, vocab_size]

  x = words -> embedding(hidden_size, name="embed_tokens", init=normal(0.02))
  repeat layers[i] in 0..num_hidden_layers {
    pool expert[num_local_experts] = clamped_swiglu(hidden_size, intermediate_size, swiglu_alpha,
        swiglu_limit)
    near = i % 2 == 0
    if len(layer_types) > 0 {
      require layer_types[i] in ["sliding_attention", "full_attention"]
      near = layer_types[i] == "sliding_attention"
    }
    window = 0
    if near {
      window = sliding_window
    }

    h = x -> rms_norm(rms_norm_eps, name="input_norm")
    x = x
        + (h
           -> sink_attention(num_attention_heads, num_key_value_heads, head_dim, window, attention_bias,
                             rope_theta, rope_factor, original_max_position_embeddings,
                             [rope_beta_slow, rope_beta_fast], name="attention"))
    z = x -> rms_norm(rms_norm_eps, name="expert_norm")
    scores = z -> linear(expert, name="router")
    chosen = scores -> top_k(num_experts_per_tok)
    x = x + (z -> expert by ((scores, chosen) -> masked_softmax))
    shares = batch_mean(chosen) * batch_mean(scores -> softmax)
    loss balance[i] = router_aux_loss_coef * num_local_experts * sum(shares, axis=-1)
  }
  logits = x -> rms_norm(rms_norm_eps, name="norm") -> linear(vocab_size, bias=false, name="lm_head")

  require causal(logits, words)
  output logits
  loss cross_entropy(logits, next)
}
