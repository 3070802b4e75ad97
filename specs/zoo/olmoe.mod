# OLMoE (Muennighoff et al., OLMoE: Open Mixture-of-Experts Language Models, 2024). Its parameters have the names in the
# config.json of published weights, which olmoe_hub.yaml maps. Queries and keys are normalised over all heads.
import swiglu from "parts/swiglu.mod"

block normed_attention(heads, rotary, eps) {
  input x: float[tokens, dim]
  input memory: float[key, dim]
  require dim % heads == 0
  q = x -> linear(dim, bias=false, name="q") -> rms_norm(eps, name="q_norm")
  k = memory -> linear(dim, bias=false, name="k") -> rms_norm(eps, name="k_norm")
  values = memory -> linear(dim, bias=false, name="v") -> unmerge([heads, dim // heads], into=["head", ""])
  queries = q -> unmerge([heads, dim // heads], into=["head", ""]) -> rotary(rotary, axis=tokens)
  keys = k -> unmerge([heads, dim // heads], into=["head", ""]) -> rotary(rotary, axis=key)
  past = (x -> positions(axis=tokens)) >= (memory -> positions(axis=key))
  gates = (((queries, keys) -> contract) / sqrt(dim // heads), past) -> masked_softmax(axis=key)
  output y = values by gates over key -> merge("head", -1) -> linear(dim, bias=false, name="out")
}

model olmoe(vocab_size=1000, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
            num_experts=8, num_experts_per_tok=2, rope_theta=10000.0, rms_norm_eps=0.00001,
            router_aux_loss_coef=0.01, norm_topk_prob=false) {
  input  words: token[time, vocab_size]
  target next: class[time, vocab_size]

  x = words -> embedding(hidden_size, name="embed_tokens", init=normal(0.02))
  repeat layers[i] in 0..num_hidden_layers {
    pool expert[num_experts] = swiglu(hidden_size, intermediate_size)

    h = x -> rms_norm(rms_norm_eps, name="input_norm")
    x = x + ((h, h) -> normed_attention(num_attention_heads, rope_theta, rms_norm_eps, name="attention"))
    z = x -> rms_norm(rms_norm_eps, name="expert_norm")
    scores = z -> linear(expert, bias=false, name="router")
    probabilities = scores -> softmax
    chosen = scores -> top_k(num_experts_per_tok)
    gates = probabilities * chosen
    if norm_topk_prob {
      gates = (scores, chosen) -> masked_softmax
    }
    x = x + (z -> expert by gates)
    shares = batch_mean(chosen) * batch_mean(probabilities)
    loss balance[i] = router_aux_loss_coef * num_experts * sum(shares, axis=-1)
  }
  logits = x -> rms_norm(rms_norm_eps, name="norm") -> linear(vocab_size, bias=false, name="lm_head")

  output logits
  loss cross_entropy(logits, next)
}
