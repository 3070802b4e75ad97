# Qwen3-Next (Qwen Team, 2025): most layers keep a matrix for each head, moved by the gated delta rule, and each fourth
# attends. Its parameters have the names in the config.json of published weights, which qwen3_next_hub.yaml maps.
import centred_norm from "parts/centred_norm.mod"
import gated_delta from "parts/gated_delta.mod"
import swiglu from "parts/swiglu.mod"

block gated_attention(heads, groups, width, theta, partial, eps, bias) {
  input x: float[time, dim]
  require heads % groups == 0
  past = x -> rename(time="key")
  queries, open = x -> linear(heads * 2 * width, bias=bias, name="q")
      -> unmerge([groups, heads // groups, 2 * width], into=["group", "member", ""]) -> split(2)
  keys = past -> linear(groups * width, bias=bias, name="k") -> unmerge([groups, width], into=["group", ""])
  values = past -> linear(groups * width, bias=bias, name="v") -> unmerge([groups, width], into=["group", ""])
  queries = queries -> centred_norm(eps, name="q_norm") -> rotary(theta, partial=partial, axis=time)
  keys = keys -> centred_norm(eps, name="k_norm") -> rotary(theta, partial=partial, axis=key)
  visible = (x -> positions(axis=time)) >= (past -> positions(axis=key))
  gates = (((queries, keys) -> contract) / sqrt(width), visible) -> masked_softmax(axis=key)
  output y = (values by gates over key) * (open -> sigmoid) -> merge("group", "member", -1)
      -> linear(dim, bias=bias, name="out")
}

model qwen3_next(vocab_size=1000, hidden_size=32, num_hidden_layers=4, full_attention_interval=4,
                 layer_types=[], num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                 rope_theta=10000000.0, partial_rotary_factor=0.25, attention_bias=false,
                 linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
                 linear_value_head_dim=8, linear_conv_kernel_dim=4, num_experts=8, num_experts_per_tok=2,
                 moe_intermediate_size=32, shared_expert_intermediate_size=32, norm_topk_prob=true,
                 rms_norm_eps=0.000001, router_aux_loss_coef=0.001) {
  require linear_num_value_heads % linear_num_key_heads == 0
  require len(layer_types) in [0, num_hidden_layers]
  input  words: token[time, vocab_size]
  target next: class[time, vocab_size]

  x = words -> embedding(hidden_size, name="embed_tokens", init=normal(0.02))
  repeat layers[i] in 0..num_hidden_layers {
    pool   expert[num_experts] = swiglu(hidden_size, moe_intermediate_size)
    module shared = swiglu(hidden_size, shared_expert_intermediate_size)
    attends = (i + 1) % full_attention_interval == 0
    if len(layer_types) > 0 {
      require layer_types[i] in ["linear_attention", "full_attention"]
      attends = layer_types[i] == "full_attention"
    }

    h = x -> centred_norm(rms_norm_eps, name="input_norm")
    if attends {
      x = x
          + (h
             -> gated_attention(num_attention_heads, num_key_value_heads, head_dim, rope_theta,
                                partial_rotary_factor, rms_norm_eps, attention_bias, name="attention"))
    } else {
      x = x
          + (h
             -> gated_delta(linear_num_key_heads, linear_num_value_heads // linear_num_key_heads,
                            linear_key_head_dim, linear_value_head_dim, linear_conv_kernel_dim, rms_norm_eps,
                            name="delta"))
    }
    z = x -> centred_norm(rms_norm_eps, name="expert_norm")
    scores = z -> linear(expert, bias=false, name="router")
    probabilities = scores -> softmax
    chosen = scores -> top_k(num_experts_per_tok)
    gates = probabilities * chosen
    if norm_topk_prob {
      gates = (scores, chosen) -> masked_softmax
    }
    x = x + (z -> expert by gates)
        + (z -> linear(1, bias=false, name="shared_gate") -> sigmoid) * (z -> shared)
    shares = batch_mean(chosen) * batch_mean(probabilities)
    loss balance[i] = router_aux_loss_coef * num_experts * sum(shares, axis=-1)
  }
  logits = x -> centred_norm(rms_norm_eps, name="norm") -> linear(vocab_size, bias=false, name="lm_head")

  require causal(logits, words)
  output logits
  loss cross_entropy(logits, next)
}
