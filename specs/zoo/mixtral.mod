# Mixtral (Jiang et al., Mixtral of Experts, 2024). Its parameters have the names in the config.json of published
# weights, which mixtral_hub.yaml maps. The last line of parameters is for Qwen2-MoE and Qwen3-MoE (Yang et al., 2024,
# 2025), whose weights qwen2_hub.yaml and qwen3_hub.yaml map.
import swiglu from "parts/swiglu.mod"

model mixtral(vocab_size=1000, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
              num_attention_heads=4, num_key_value_heads=2, head_dim=hidden_size // num_attention_heads,
              num_local_experts=8, num_experts_per_tok=2, rope_theta=1000000.0, rms_norm_eps=0.00001,
              router_aux_loss_coef=0.02, qkv_bias=false, qk_norm=false, norm_topk_prob=true,
              shared_expert_intermediate_size=0) {
  input  words: token[time, vocab_size]
  target next: class[time, vocab_size]

  x = words -> embedding(hidden_size, name="embed_tokens", init=normal(0.02))
  repeat layers[i] in 0..num_hidden_layers {
    pool expert[num_local_experts] = swiglu(hidden_size, intermediate_size)

    h = x -> rms_norm(rms_norm_eps, name="input_norm")
    x = x
        + (h
           -> attention(num_attention_heads, kv_heads=num_key_value_heads, head_width=head_dim,
                        rotary=rope_theta, causal=true, bias=qkv_bias, out_bias=false, qk_norm=qk_norm,
                        name="attention"))
    z = x -> rms_norm(rms_norm_eps, name="expert_norm")
    scores = z -> linear(expert, bias=false, name="router")
    probabilities = scores -> softmax
    chosen = scores -> top_k(num_experts_per_tok)
    gates = probabilities * chosen
    if norm_topk_prob {
      gates = (scores, chosen) -> masked_softmax
    }
    x = x + (z -> expert by gates)
    if shared_expert_intermediate_size > 0 {
      module shared = swiglu(hidden_size, shared_expert_intermediate_size)
      x = x + (z -> linear(1, bias=false, name="shared_gate") -> sigmoid) * (z -> shared)
    }
    shares = batch_mean(chosen) * batch_mean(probabilities)
    loss balance[i] = router_aux_loss_coef * num_local_experts * sum(shares, axis=-1)
  }
  logits = x -> rms_norm(rms_norm_eps, name="norm") -> linear(vocab_size, bias=false, name="lm_head")

  output logits
  loss cross_entropy(logits, next)
}
