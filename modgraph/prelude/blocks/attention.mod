# Attention of tokens to themselves or to a memory, by several heads: softmax(Q Kᵀ / √head_width) V, projected (Vaswani
# et al., 2017). Padding is not read.
#
# (x, memory) -> attention(…) attends to other tokens, whose width may be another. A third operand is a mask with the
# axes [tokens, key] or [key]: no token attends where it is zero. A token that attends to none gives the bias alone.
#
# head_width is width / heads if not given. kv_heads shares keys and values among heads: it must divide heads. Tokens
# that attend to themselves without it have one projection, qkv. qk_norm applies rms_norm to the queries and keys of
# each head.
#
# Positions count from 0. causal hides later ones. rotary is the base of rotary positions, often 10000 (Su et al.,
# 2021). relative adds a learned bias for each head and bucket of distances, often 32 buckets (T5: Raffel et al., 2020).
# Also called: self_attention, cross_attention, multihead_attention, mha.
# In torch: embed_dim= num_heads=heads
block attention(heads, bias=true, causal=false, out_bias=true, kv_heads=0, head_width=0, rotary=0.0,
                relative=0, qk_norm=false) {
  require heads in 1..4097 and kv_heads in 0..4097 and head_width in 0..65537
  require rotary == 0 or rotary >= 1
  require relative == 0 or relative in 4..129
  input x: float[tokens, dim]
  input memory: float[key, width] = x
  input mask: float[tokens, key] = 1

  size = head_width
  if head_width == 0 {
    require dim % heads == 0
    size = dim // heads
  }
  require rotary == 0 or size % 2 == 0
  groups = heads
  if kv_heads > 0 {
    require heads % kv_heads == 0
    groups = kv_heads
  }

  if kv_heads > 0 or given(memory) {
    queries = x -> linear(heads * size, bias=bias, name="q") -> unmerge([heads, size], into=["head", ""])
    keys = memory -> linear(groups * size, bias=bias, name="k") -> unmerge([groups, size], into=["head", ""])
    values = memory -> linear(groups * size, bias=bias, name="v")
        -> unmerge([groups, size], into=["head", ""])
  } else {
    q, k, v = x -> linear(3 * heads * size, bias=bias, name="qkv") -> unmerge([3 * heads, size])
        -> split(3, axis=-2)
    queries = q -> rename(["-2", "head"])
    keys = k -> rename(["-2", "head"]) -> rename(tokens="key")
    values = v -> rename(["-2", "head"]) -> rename(tokens="key")
  }
  if qk_norm {
    queries = queries -> rms_norm(name="q_norm")
    keys = keys -> rms_norm(name="k_norm")
  }
  if rotary > 0 {
    queries = queries -> rotary(rotary, axis=tokens)
    keys = keys -> rotary(rotary, axis=key)
  }
  if groups < heads {
    queries = queries -> unmerge([groups, heads // groups], axis="head", into=["head", "member"])
  }

  scores = ((queries, keys) -> contract) / sqrt(size)
  if relative > 0 {
    require causal or relative % 2 == 0
    constant reach: float[distance=257] = 0
    offsets = (reach -> positions(axis=distance)) - 128
    biases = offsets -> bucket_of(relative, causal) -> embedding(heads, init=normal(0.02), name="relative")
        -> unmerge([heads], into=["head"])
    if groups < heads {
      biases = biases -> unmerge([groups, heads // groups], axis="head", into=["head", "member"])
    }
    offset = (x -> positions(axis=tokens)) - (memory -> positions(axis=key))
    learned = (biases, offset + 128 -> to_ids(257)) -> lookup
    scores = scores + learned
  }
  if causal {
    visible = (x -> positions(axis=tokens)) >= (memory -> positions(axis=key))
    if given(mask) {
      visible = visible * (mask != 0)
    }
    gates = (scores, visible) -> masked_softmax(axis=key)
  } else if given(mask) {
    gates = (scores, mask != 0) -> masked_softmax(axis=key)
  } else {
    gates = scores -> softmax(axis=key)
  }
  y = values by gates over key
  if groups < heads {
    y = y -> merge("head", "member", into="head")
  }
  output y -> merge("head", -1) -> linear(dim, bias=out_bias, name="out")
}

# Buckets of the offsets of queries to keys (T5): half of them hold one distance each, the others grow logarithmically up
# to a distance of 128. Unless the attention is causal, half of all are for later positions.
block bucket_of(buckets, causal) {
  input offset: float[place]
  distance = maximum(offset, 0)
  count = buckets
  if not causal {
    distance = offset -> abs
    count = buckets // 2
  }
  exact = count // 2
  slope = (count - exact) / log(128 / exact)
  far = log(maximum(distance, 1)) * slope + (exact - log(exact) * slope + 0.00001)
  bucket = where(distance < exact, distance, minimum(far, count - 1))
  if not causal {
    bucket = bucket + count * (offset < 0)
  }
  output bucket -> to_ids(buckets)
}
