"""Names from other libraries that are no op here: what to write in their place, or that no op does the same."""

from __future__ import annotations

from dataclasses import dataclass

FLOATS, IMAGE, IDS = "float[6, 8]", "float[8, 6, 6]", "token[6, 11]"


@dataclass(frozen=True)
class Idiom:
    """`code` has statements that compute y from x and mean the same as the words; `when` is a remark on them.

    Where no op does the same, `lacks` says what no op does; the code is then the nearest, if there is one, and `when`
    says how it differs. `x` is the type of x.
    """

    words: tuple[str, ...]
    code: str = ""
    when: str = ""
    lacks: str = ""
    x: str = FLOATS

    def help(self, name: str) -> str:
        """The help line for one of the words."""
        if not self.lacks:
            return f"there is no op {name}: write, for example, {self.code}" + (f" ({self.when})" if self.when else "")
        nearest = f"; nearest: {self.code}" if self.code else ""
        return f"no op here {self.lacks}{nearest}" + (f" ({self.when})" if self.when else "")


LOOKED_UP = "reads at places that are data"
WRITTEN_AT = "writes at places that are data"
NOT_ARITHMETIC = "changes the kind of a value: arithmetic is of floats, and a comparison gives 0 and 1"
ROUNDS = "rounds: it has no gradient"

MEANS = (
    # layers
    Idiom(
        ("rnn", "recurrent", "simple_rnn"),
        "scan x as v with h: float[8] { h = (h, v) -> concat -> linear(8) -> tanh yield h } as y",
    ),
    Idiom(("bidirectional",), "y = (x -> gru(8), x -> gru(8, reverse=true)) -> concat"),
    Idiom(("mlp", "ffn", "feed_forward", "sequential"), "y = x -> linear(32) -> gelu -> linear(8)"),
    Idiom(("time_distributed",), "y = x -> linear(4)", "an op of the last axis does the same for every token"),
    Idiom(("lambda_layer", "activation"), "y = x -> gelu"),
    Idiom(("transformer", "encoder_layer"), "y = x + (x -> layer_norm -> attention(2))"),
    Idiom(("causal_attention", "masked_attention"), "y = x -> attention(2, causal=true)"),
    Idiom(("gqa", "grouped_query_attention"), "y = x -> attention(4, kv_heads=2)"),
    Idiom(
        ("scaled_dot_product_attention", "sdpa", "dot_product_attention"),
        "s = ((x, x) -> contract(axis=-1)) / sqrt(8) -> softmax y = (s, x -> transpose) -> contract(axis=-1)",
        "attention has learned maps besides",
    ),
    Idiom(("rope", "rotary", "rotary_embedding"), "y = x -> attention(2, rotary=10000.0)"),
    Idiom(("relative_position_bias", "position_bias", "alibi"), "y = x -> attention(2, relative=32)"),
    Idiom(("glu", "gated_linear_unit"), "a, b = x -> split(2) y = a * (b -> sigmoid)"),
    Idiom(("swiglu",), "y = ((x -> linear(32) -> silu) * (x -> linear(32))) -> linear(8)"),
    Idiom(("geglu",), "y = ((x -> linear(32) -> gelu) * (x -> linear(32))) -> linear(8)"),
    Idiom(("maxout",), "y = x -> linear(16) -> unmerge([8, 2]) -> max(axis=-1)"),
    Idiom(("residual", "skip", "shortcut"), "y = x + (x -> linear(8))"),
    Idiom(("moe", "mixture_of_experts", "experts"), "pool expert[4] = linear(8) y = x -> expert -> mean"),
    Idiom(("embedding_bag",), "y = x -> embedding(8) -> mean", x=IDS),
    Idiom(("depthwise_conv", "depthwise_conv2d"), "y = x -> conv(8, padding=1, groups=8)", x=IMAGE),
    Idiom(
        ("separable_conv", "separable_conv2d"), "y = x -> conv(8, padding=1, groups=8) -> conv(16, kernel=1)", x=IMAGE
    ),
    Idiom(
        ("squeeze_excite", "squeeze_excitation", "se_block"),
        "s = x -> flatten(2) -> mean(axis=-1) -> linear(4) -> relu -> linear(8) -> sigmoid "
        "y = x * (s -> new_axis(6, at=-1) -> new_axis(6, at=-1))",
        x=IMAGE,
    ),
    Idiom(("batch_norm1d",), "y = x -> new_axis(at=-1) -> batch_norm -> merge", "of the channels of [channels, time]"),
    Idiom(("instance_norm", "instance_norm2d"), "y = x -> group_norm(8)", "with as many groups as channels", x=IMAGE),
    # axes
    Idiom(("reshape", "view"), "y = x -> unmerge([2, 4]) -> merge(-3, -2)"),
    Idiom(("rearrange", "einops"), "y = x -> unmerge([2, 4]) -> transpose(-2, -3, -1)"),
    Idiom(("unsqueeze", "expand_dims", "add_axis"), "y = x -> new_axis(at=-1)"),
    Idiom(("squeeze",), "y = x -> merge(-2, -1)", "an axis of length 1 joins its neighbour", x="float[6, 1]"),
    Idiom(("tile", "repeat", "repeat_vector"), "y = x -> new_axis(2) -> merge(-3, -2)"),
    Idiom(("repeat_interleave",), "y = x -> new_axis(2, at=-2) -> merge(-3, -2)"),
    Idiom(("broadcast_to",), "y = x -> new_axis(3)"),
    Idiom(("unbind", "unstack"), "y = x -> select(0, axis=-1)", "one place at a time"),
    Idiom(("slice", "narrow"), "a, y = x -> split([3, 5])"),
    Idiom(("roll",), "a, b = x -> split([6, 2]) y = (b, a) -> concat"),
    Idiom(("pad", "zero_pad"), "constant z: float[6, 2] = 0 y = (x, z) -> concat"),
    Idiom(("vstack",), "y = (x -> transpose, x -> transpose) -> concat -> transpose"),
    Idiom(("hstack",), "y = (x, x) -> concat"),
    Idiom(
        ("upsample", "interpolate", "resize"),
        "y = x -> new_axis(2, at=-1) -> merge -> new_axis(2, at=-2) -> merge(-3, -2)",
        "each number of an image four times; no op interpolates",
        x=IMAGE,
    ),
    Idiom(
        ("pixel_shuffle", "depth_to_space"),
        "y = x -> unmerge([2, 2, 2], axis=-3) -> transpose(-2, -4, -1, -3) -> merge(-4, -3) -> merge",
        x=IMAGE,
    ),
    # products
    Idiom(
        ("matmul", "mm", "bmm", "matrix_multiply", "einsum", "tensordot", "dot", "dot_product"),
        "y = (x, x) -> contract(axis=-1)",
        "of a and b it is Σ a[…, d] b[…, d]: transpose what is to be multiplied by another axis",
    ),
    Idiom(("outer",), "y = (x -> new_axis(8, at=-1)) * (x -> new_axis(8, at=-2))"),
    Idiom(("cosine_similarity",), "y = (x -> unit, x -> unit) -> contract(axis=-1)"),
    Idiom(
        ("cdist", "pairwise_distance"),
        "d = x ** 2 -> sum(axis=-1) "
        "y = (d -> new_axis(6, at=-1)) + (d -> new_axis(6)) - 2 * ((x, x) -> contract(axis=-1)) "
        "-> clamp(min=0) -> sqrt",
    ),
    # choices
    Idiom(("one_hot_argmax", "hardmax"), "y = x -> top_k"),
    Idiom(("argmax",), "y = (x -> top_k) * (x -> positions) -> sum(axis=-1)", "x -> top_k is 1 there and 0 elsewhere"),
    Idiom(("argmin",), "y = (-x -> top_k) * (x -> positions) -> sum(axis=-1)"),
    Idiom(
        ("one_hot",),
        "z = x -> new_axis(5, at=-1) y = z == (z -> positions)",
        "of whole numbers that are floats; no op takes ids, but embedding has a learned vector for each",
    ),
    Idiom(("softmax2d",), "y = x -> softmax(axis=-3)", x=IMAGE),
    Idiom(("cond", "switch"), "y = (x > 1, x, -x) -> where", "by a constant: if n > 1 { … } else { … }"),
    Idiom(("true_divide",), "y = x / 2"),
    Idiom(("gumbel_softmax",), "y = x + (x -> gumbel_noise) -> softmax"),
    Idiom(("masked_fill",), "y = (x > 1, x) -> where(then=0)"),
    Idiom(("masked_mean",), "m = x > 0 y = (x * m -> sum) / (m -> sum)", "of padding every mean is without"),
    Idiom(("median",), "y = x -> kth_largest(5, axis=-1)", "of 8 values"),
    Idiom(("kthvalue", "kth_smallest"), "y = -(-x -> kth_largest(2, axis=-1))"),
    Idiom(("any",), "y = x != 0 -> max(axis=-1)"),
    Idiom(("all",), "y = x != 0 -> min(axis=-1)"),
    # means over axes
    Idiom(("global_average_pool", "global_avg_pool", "global_average_pooling2d", "adaptive_avg_pool",
           "adaptive_avg_pool2d", "gap"), "y = x -> flatten(2) -> mean(axis=-1)", x=IMAGE),
    Idiom(("global_max_pool", "global_max_pooling2d", "adaptive_max_pool", "adaptive_max_pool2d"),
          "y = x -> flatten(2) -> max(axis=-1)", x=IMAGE),
    Idiom(("global_average_pooling1d", "global_mean_pool", "mean_pool"), "y = x -> mean", "over tokens"),
    Idiom(("global_max_pooling1d",), "y = x -> max", "over tokens"),
    Idiom(("sum_pool", "global_add_pool"), "y = x -> sum", "over tokens"),
    Idiom(("logsumexp",), "y = x -> exp -> sum(axis=-1) -> log"),
    Idiom(("logaddexp",), "y = (x -> exp) + (x * 2 -> exp) -> log"),
    Idiom(("var", "variance"), "y = (x - (x -> mean)) ** 2 -> mean"),
    Idiom(("std", "standard_deviation"), "y = (x - (x -> mean)) ** 2 -> mean -> sqrt"),
    Idiom(("norm", "l2_norm", "vector_norm"), "y = x ** 2 -> sum(axis=-1) -> sqrt"),
    # functions of one number
    Idiom(("square", "squared"), "y = x ** 2"),
    Idiom(("reciprocal", "inverse"), "y = 1 / x"),
    Idiom(("rsqrt",), "y = 1 / (x -> sqrt)"),
    Idiom(("neg", "negative"), "y = -x"),
    Idiom(("log1p",), "y = 1 + x -> log"),
    Idiom(("log2",), "y = (x -> log) / 0.6931471805599453"),
    Idiom(("log10",), "y = (x -> log) / 2.302585092994046"),
    Idiom(("expm1",), "y = (x -> exp) - 1"),
    Idiom(("exp2",), "y = 2 ** x"),
    Idiom(("tan",), "y = (x -> sin) / (x -> cos)"),
    Idiom(("sinh",), "y = ((x -> exp) - (-x -> exp)) / 2"),
    Idiom(("cosh",), "y = ((x -> exp) + (-x -> exp)) / 2"),
    Idiom(("erfc",), "y = 1 - (x -> erf)"),
    Idiom(("mish",), "y = x * (x -> softplus -> tanh)"),
    Idiom(("relu6",), "y = x -> clamp(min=0, max=6)"),
    Idiom(("hardtanh",), "y = x -> clamp(min=-1, max=1)"),
    Idiom(("clamp_min",), "y = x -> clamp(min=0)"),
    Idiom(("hard_sigmoid",), "y = x / 6 + 0.5 -> clamp(min=0, max=1)"),
    Idiom(("hard_swish", "hard_silu"), "y = x * (x / 6 + 0.5 -> clamp(min=0, max=1))"),
    Idiom(("prelu",), "weight s: float[8] = constant(0.25) y = (x -> relu) + s * (x -> clamp(max=0))"),
    Idiom(("selu",), "y = 1.0507009873554805 * ((x -> relu) + 1.6732632423543772 * ((x -> clamp(max=0) -> exp) - 1))"),
    Idiom(("softsign",), "y = x / (1 + (x -> abs))"),
    Idiom(("softmin",), "y = -x -> softmax"),
    Idiom(("log_sigmoid",), "y = -(-x -> softplus)"),
    Idiom(("lerp",), "y = x + 0.5 * (x ** 2 - x)"),
    Idiom(("logical_and", "both"), "y = (x > 0) * (x < 1)"),
    Idiom(("logical_or", "either"), "y = (x < 0, x > 1) -> maximum"),
    Idiom(("logical_not",), "y = 1 - (x > 0)"),
    Idiom(("zeros_like",), "y = 0 * x"),
    Idiom(("ones_like",), "y = 0 * x + 1"),
    Idiom(("zeros", "ones", "linspace"), "constant c: float[2, 8] = 0 y = (x, c) -> contract", "arrays are declared"),
    # losses
    Idiom(("l1", "mae", "l1_loss"), "y = x -> abs -> flatten -> mean(axis=-1)", "x is the difference"),
    Idiom(
        ("huber", "huber_loss", "smooth_l1_loss"),
        "d = x -> abs y = (d < 1, 0.5 * d ** 2, d - 0.5) -> where -> flatten -> mean(axis=-1)",
        "x is the difference",
    ),
    Idiom(
        ("bce_with_logits", "bce_with_logits_loss", "binary_cross_entropy_with_logits", "sigmoid_cross_entropy"),
        "t = x > 1 y = (x -> softplus) - t * x -> flatten -> mean(axis=-1)",
        "t is the target, x the logit",
    ),
    Idiom(
        ("bce", "bce_loss", "binary_cross_entropy"),
        "t = x > 1 p = x -> sigmoid y = -(t * (p -> log) + (1 - t) * (1 - p -> log)) -> flatten -> mean(axis=-1)",
        "t is the target, p its probability",
    ),
    Idiom(
        ("kl_div", "kl_divergence"),
        "p = x -> softmax q = x ** 2 -> softmax y = p * ((p -> log) - (q -> log)) -> sum(axis=-1)",
    ),
)  # fmt: skip

LACKS = (
    Idiom(("gather", "take", "take_along_dim", "take_along_axis", "index_select", "gather_nd", "dynamic_slice"),
          "y = x -> select(1)", "at a place that is a constant", LOOKED_UP),
    Idiom(("scatter", "scatter_add", "scatter_mean", "index_add", "index_put", "segment_sum"), lacks=WRITTEN_AT),
    Idiom(("sort",), "y = x -> sort_order", "the rank of each place", "puts values in their order"),
    Idiom(("argsort",), "y = x -> sort_order", "the rank of each place", "lists places in the order of their values"),
    Idiom(("nonzero", "unique"), "y = x != 0", "1 and 0", "makes a value as long as its numbers say"),
    Idiom(("quantile",), "y = x -> kth_largest(2, axis=-1)", "one of the values", "interpolates between values"),
    Idiom(("prod", "cumprod"), "y = x -> log -> sum(axis=-1) -> exp", "of positive numbers",
          "multiplies along an axis"),
    Idiom(("flip", "reverse"), "y = x -> gru(8, reverse=true)", "recurrent layers read backwards", "reverses an axis"),
    Idiom(("conv1d", "conv3d", "conv1d_transpose"), "y = x -> conv(8)", "over height and width",
          "convolves along one axis, or three", IMAGE),
    Idiom(("conv_transpose", "conv_transpose2d", "conv2d_transpose", "deconvolution"),
          "y = x -> new_axis(2, at=-1) -> merge -> new_axis(2, at=-2) -> merge(-3, -2) -> conv(8, padding=1)",
          "enlarged, then convolved", "convolves backwards", IMAGE),
    Idiom(("unfold", "fold", "im2col"), "y = x -> patch_embed(2, 8)", "learned, and without overlap",
          "cuts overlapping windows", IMAGE),
    Idiom(("bilinear",), "y = (x -> linear(8)) * x -> sum(axis=-1)", "one number",
          "multiplies two values by a learned form"),
    Idiom(("dropout2d", "dropout3d", "spatial_dropout2d"), "y = x -> dropout(0.1)", "each number by itself",
          "drops whole channels"),
    Idiom(("drop_path", "stochastic_depth"), "y = x + (x -> linear(8) -> dropout(0.1))", "each number by itself",
          "drops a branch for a whole example"),
    Idiom(("positional_encoding", "sinusoidal"), "y = x -> position",
          "learned for each place; or attention(2, rotary=10000.0)", "adds sines of a place"),
    Idiom(("uniform", "rand", "random_uniform"), "y = x + (x -> normal_noise(0.1))", "normal, in training",
          "draws uniform numbers"),
    Idiom(("randn", "random_normal", "normal"), "y = x + (x -> normal_noise(0.1))", "in training, otherwise none",
          "draws numbers in inference too"),
    Idiom(("bernoulli",), "y = x -> draw", "one of several places", "draws zeros and ones by themselves"),
    Idiom(("floor", "ceil", "round", "trunc", "fmod", "mod", "remainder", "floor_divide"), lacks=ROUNDS),
    Idiom(("atan", "arctan", "atan2", "asin", "acos", "arcsin", "arccos", "asinh", "acosh", "atanh"),
          lacks="inverts a sine or a tangent"),
    Idiom(("isnan", "isinf", "nan_to_num"),
          lacks="asks whether a number is finite: a training stops at the first that is not"),
    Idiom(("cast", "to_float", "astype", "float", "int", "long", "bool"), lacks=NOT_ARITHMETIC),
    Idiom(("topk",), "y = x * (x -> top_k(2))", "zero elsewhere", "makes an axis as short as its largest values"),
    Idiom(("vmap", "map", "while_loop", "fori_loop", "lambda", "checkpoint"),
          lacks="takes a function: see repeat, for, scan and block"),
    Idiom(("shape", "size", "item"), lacks="gives a shape, which is a constant: len(axis)"),
    Idiom(("weight_norm", "spectral_norm"), lacks="changes how another's weights are made"),
    Idiom(("trace", "diag", "diagonal", "tril", "triu", "eye", "identity_matrix", "kron", "meshgrid"),
          "constant c: float[2, 2] = [[1, 0], [0, 1]] y = (x -> linear(2), c) -> contract(axis=-1)",
          "a constant array", "knows a matrix by its diagonal"),
    Idiom(("causal_mask",), "y = x -> attention(2, causal=true)", "attention has its own", "makes a mask"),
)  # fmt: skip
IDIOMS = (*MEANS, *LACKS)
