# DeepSeek-V3 (2024). Its parameters have the names in the config.json of published weights, which deepseek_v3_hub.yaml
# maps, and deepseek_v2_hub.yaml those of DeepSeek-V2.
import grouped_router from "parts/grouped_router.mod"
import latent_attention from "parts/latent_attention.mod"
import swiglu from "parts/swiglu.mod"

model deepseek_v3(vocab_size=1000, hidden_size=32, intermediate_size=64, moe_intermediate_size=16,
                  num_hidden_layers=2, first_k_dense_replace=1, num_attention_heads=4, q_lora_rank=16,
                  kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=8, n_routed_experts=16,
                  n_shared_experts=1, num_experts_per_tok=4, n_group=4, topk_group=2, softmax_scores=false,
                  norm_topk_prob=true, routed_scaling_factor=2.5, bias_update_speed=0.001, rope_theta=10000.0,
                  rope_interleave=true, factor=1.0, original_max_position_embeddings=4096, beta_fast=32.0,
                  beta_slow=1.0, mscale=0.0, mscale_all_dim=0.0, rms_norm_eps=0.000001) {
  input  words: token[time, vocab_size]
  target next: class[time, vocab_size]

  x = words -> embedding(hidden_size, name="embed_tokens", init=normal(0.02))
  repeat layers[i] in 0..num_hidden_layers {
    x = x
        + (x -> rms_norm(rms_norm_eps, name="input_norm")
           -> latent_attention(num_attention_heads, q_lora_rank, kv_lora_rank, qk_nope_head_dim,
                               qk_rope_head_dim, v_head_dim, rope_theta, rope_interleave, factor,
                               original_max_position_embeddings, beta_fast, beta_slow, mscale, mscale_all_dim,
                               name="attention"))
    z = x -> rms_norm(rms_norm_eps, name="expert_norm")
    if i < first_k_dense_replace {
      x = x + (z -> swiglu(hidden_size, intermediate_size, name="dense"))
    } else {
      pool   expert[n_routed_experts] = swiglu(hidden_size, moe_intermediate_size)
      router gate = grouped_router(num_experts_per_tok, n_group, topk_group, softmax_scores, norm_topk_prob,
                                   routed_scaling_factor, bias_update_speed)
      x = x + (z -> expert by gate)
          + (z -> swiglu(hidden_size, n_shared_experts * moe_intermediate_size, name="shared"))
    }
  }
  logits = x -> rms_norm(rms_norm_eps, name="norm") -> linear(vocab_size, bias=false, name="lm_head")

  output logits
  loss cross_entropy(logits, next)
  require causal(logits, words)
}
