"""Words of torch, keras, jax, einops and numpy: what is said of each keeps its meaning, or says that no op does it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own abbreviation
from torch import Tensor

import modgraph
from modgraph.cli import main
from modgraph.diagnostics import ModgraphError
from modgraph.ops import Op
from modgraph.ops.idioms import IDIOMS, Idiom

CALLED = """
reverse flip|DropPath drop_path|stochastic_depth drop_path|rint round
ConvTranspose2d conv_transpose|deconv conv_transpose|interpolate upsample|resize upsample
L1Loss l1|mae l1|HuberLoss huber|SmoothL1Loss huber|BCEWithLogitsLoss binary_cross_entropy|BCELoss binary_cross_entropy
permute transpose|swapaxes transpose|moveaxis transpose|layernorm layer_norm|LayerNorm layer_norm|BatchNorm2d batch_norm
GroupNorm group_norm|RMSNorm rms_norm|GELU gelu|ReLU relu|SiLU silu|swish silu|Linear linear|Dense linear|fc linear
Conv2d conv|Embedding embedding|LSTM lstm|GRU gru|MaxPool2d max_pool|AvgPool2d avg_pool|cumsum cumulative_sum
normalize unit|clip clamp|LeakyReLU leaky_relu|Softmax softmax|Dropout dropout|MultiheadAttention attention
mha attention|cat concat|concatenate concat|chunk split|pow power|sub subtract|mul multiply|div divide
detach stop_gradient|arange positions|multinomial draw|CrossEntropyLoss cross_entropy|nll_loss cross_entropy|MSELoss mse
PatchEmbed patch_embed|cls_token class_token|Flatten flatten|inner contract|expand_as expand
Conv1d conv1d|rope rotary|delay shift|reduce_logsumexp logsumexp|gather lookup|take lookup|index_select lookup
onehot one_hot|bucketize to_ids|int to_ids|remainder modulo
"""
LACKING = """
dynamic_slice scatter index_add nonzero unique
quantile prod cumprod conv1d_transpose Conv3d unfold im2col bilinear Dropout2d sinusoidal
rand uniform randn bernoulli atan asin isnan nan_to_num cast astype vmap while_loop shape
weight_norm tril eye causal_mask
"""
UNKNOWN = "lax reduce pack ctc_loss mode lgamma focal_loss addmm masked_median log_softmax2d GCNConv len"
TYPOS = "liner linear|soft_max softmax|relo relu|sigmiod sigmoid|cocat concat|tahn tanh|layernom layer_norm|gelo gelu"

MEANING: dict[str, Callable[[Tensor], Tensor]] = {
    "scaled_dot_product_attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "glu": F.glu,
    "reshape": lambda x: x.reshape(len(x), 12, 4),
    "rearrange": lambda x: x.reshape(-1, 6, 2, 4).permute(0, 2, 1, 3),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "squeeze": lambda x: x.squeeze(-1),
    "tile": lambda x: x.repeat(1, 2, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, dim=-2),
    "broadcast_to": lambda x: x.unsqueeze(1).expand(-1, 3, -1, -1),
    "unbind": lambda x: x.unbind(-1)[0],
    "slice": lambda x: x[..., 3:],
    "roll": lambda x: x.roll(2, -1),
    "pad": lambda x: F.pad(x, (0, 2)),
    "vstack": lambda x: torch.cat([x, x], dim=-2),
    "hstack": lambda x: torch.cat([x, x], dim=-1),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "matmul": lambda x: x @ x.mT,
    "outer": lambda x: torch.einsum("bni,bnj->bnij", x, x),
    "cosine_similarity": lambda x: F.cosine_similarity(x.unsqueeze(2), x.unsqueeze(1), dim=-1),
    "cdist": lambda x: torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist"),
    "one_hot_argmax": lambda x: F.one_hot(x.argmax(-1), 8).to(x),
    "argmax": lambda x: x.argmax(-1),
    "argmin": lambda x: x.argmin(-1),
    "sort": lambda x: x.sort(-1).values,
    "argsort": lambda x: x.argsort(-1),
    "topk": lambda x: x.topk(2).values,
    "softmax2d": lambda x: x.softmax(1),
    "gumbel_softmax": lambda x: x.softmax(-1),  # in evaluation, where no noise is drawn
    "masked_fill": lambda x: x.masked_fill(x > 1, 0),
    "masked_mean": lambda x: (x * (x > 0)).sum(-2) / (x > 0).sum(-2),
    "median": lambda x: x.median(-1).values,
    "kthvalue": lambda x: x.kthvalue(2, -1).values,
    "any": lambda x: x.any(-1).to(x),
    "all": lambda x: x.all(-1).to(x),
    "global_average_pool": lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1),
    "global_max_pool": lambda x: F.adaptive_max_pool2d(x, 1).flatten(1),
    "global_average_pooling1d": lambda x: x.mean(-2),
    "global_max_pooling1d": lambda x: x.amax(-2),
    "sum_pool": lambda x: x.sum(-2),
    "logaddexp": lambda x: torch.logaddexp(x, 2 * x),
    "var": lambda x: x.var(-2, correction=0),
    "std": lambda x: x.std(-2, correction=0),
    "norm": lambda x: x.norm(dim=-1),
    "square": torch.square,
    "reciprocal": torch.reciprocal,
    "rsqrt": torch.rsqrt,
    "neg": torch.neg,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "log10": torch.log10,
    "expm1": torch.expm1,
    "exp2": torch.exp2,
    "tan": torch.tan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "erfc": torch.erfc,
    "mish": F.mish,
    "relu6": F.relu6,
    "hardtanh": F.hardtanh,
    "clamp_min": lambda x: x.clamp_min(0),
    "hard_sigmoid": F.hardsigmoid,
    "hard_swish": F.hardswish,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "prelu": lambda x: F.prelu(x, torch.tensor(0.25)),
    "selu": F.selu,
    "softsign": F.softsign,
    "softmin": lambda x: F.softmin(x, -1),
    "log_sigmoid": F.logsigmoid,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "frac": torch.frac,
    "fake_quantize": torch.round,
    "lerp": lambda x: torch.lerp(x, x**2, 0.5),
    "cond": lambda x: torch.where(x > 1, x, -x),
    "true_divide": lambda x: torch.true_divide(x, 2),
    "logical_and": lambda x: torch.logical_and(x > 0, x < 1).to(x),
    "logical_or": lambda x: torch.logical_or(x < 0, x > 1).to(x),
    "logical_not": lambda x: torch.logical_not(x > 0).to(x),
    "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like,
    "kl_div": lambda x: F.kl_div((x**2).log_softmax(-1), x.softmax(-1), reduction="none").sum(-1),
    "batch_norm1d": lambda x: F.batch_norm(x, torch.zeros(6), torch.ones(6)),  # as it begins
    "instance_norm": F.instance_norm,
}
LEARNED = """
rnn bidirectional mlp time_distributed lambda_layer transformer causal_attention causal gqa relative_position_bias
swiglu geglu maxout residual moe embedding_bag depthwise_conv depthwise_conv1d separable_conv squeeze_excite zeros
""".split()


def help_of(name: str, text: str = "model m() {{ input x: float[6, 8] y = x -> {} output y }}") -> str:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(text.format(name))
    return caught.value.diagnostics[0].advice()


def pairs(text: str) -> list[tuple[str, str]]:
    found = (each.split() for line in text.strip().splitlines() for each in line.split("|"))
    return [(name, op) for name, op in found]


@pytest.mark.parametrize(("name", "op"), pairs(CALLED))
def test_another_name_of_an_op(name: str, op: str) -> None:
    assert help_of(name) == f'it is called "{op}" here'


@pytest.mark.parametrize("name", LACKING.split())
def test_what_no_op_does_is_said(name: str) -> None:
    assert help_of(name).startswith("no op here "), help_of(name)


@pytest.mark.parametrize("name", UNKNOWN.split())
def test_of_a_word_that_is_not_known_nothing_is_guessed(name: str) -> None:
    assert help_of(name) == "all ops: modgraph explain"


@pytest.mark.parametrize(("name", "op"), pairs(TYPOS))
def test_a_misspelt_op(name: str, op: str) -> None:
    assert help_of(name) in (f'did you mean "{op}"?', f'it is called "{op}" here')


def program_of(idiom: Idiom) -> modgraph.Program:
    return modgraph.loads(f"model m() {{ input x: {idiom.x} {idiom.code} output y }}")


@pytest.mark.parametrize("idiom", [each for each in IDIOMS if each.code], ids=lambda idiom: idiom.words[0])
def test_what_is_advised_instead_of_an_op_is_valid_and_computes_the_same(idiom: Idiom) -> None:
    """In numbers, wherever nothing is learned."""
    program = program_of(idiom)
    name = idiom.words[0]
    assert (name in MEANING) + (name in LEARNED) + bool(idiom.lacks) == 1, "compare it here, or say why not"
    if name not in MEANING:
        return
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, *(axis.size or 1 for axis in program.ir.input_types["x"].shape), generator=generator)
    x = {"one_hot": x.abs().floor(), "log1p": x.abs(), "rsqrt": x.abs(), "logaddexp": x}.get(name, x)
    x = x.abs() if name in ("log2", "log10") else x
    x[0, 0] = 0 if name in ("any", "all") else x[0, 0]
    assert torch.allclose(program.build().eval()(x).float(), MEANING[name](x).float(), atol=1e-5, equal_nan=True), name


@pytest.mark.parametrize(
    "name", ["rearrange", "tile", "scatter", "KLDiv", "GlobalAveragePooling2D", "hard_silu", "einsum"]
)
def test_advice_finds_words_however_they_are_written(name: str) -> None:
    assert "no op" in help_of(name)


def test_no_word_of_the_field_is_an_op_or_stands_for_two() -> None:
    words = [word.replace("_", "") for idiom in IDIOMS for word in idiom.words]
    assert len(words) == len(set(words))
    for op in Op.registry.values():
        assert not {word.replace("_", "") for word in op.synonyms} & set(words), op.name
    assert not set(Op.registry) & {word for idiom in IDIOMS for word in idiom.words}


WEIGHTS = "pool e[4] = linear(8) p = x -> linear(e) -> softmax c = p -> top_k(2)"


@pytest.mark.parametrize("weights", ["p * c", "c + p", "p * c * c"])
def test_a_product_behind_by_may_be_meant_either_way(weights: str) -> None:
    advice = help_of(weights, f"model m() {{{{ input x: float[6, 8] {WEIGHTS} y = x -> e by {{}} output y }}}}")
    assert "(x -> op)" in advice and "by (w" in advice, "both meanings are told"


def test_a_product_behind_a_pipeline_is_no_comment() -> None:
    assert help_of("relu * 2") == "put the pipeline in parentheses: (x -> op) * y"


@pytest.mark.parametrize(
    ("body", "text", "advice"),
    [
        ("loss balance * balance(x)", "a parameter", "importance(x) or load(x)"),
        ('loss aux_loss(x, over="example")', "a value of type float[6, 8]", 'importance(x, over="example")'),
        ("z = x -> balance", "a parameter", "importance or load"),
        ("z = x -> balance(2)", "a parameter", "importance or load"),
        ("loss width(x)", "a parameter", "leave out the arguments"),
    ],
)
def test_a_name_that_hides_what_an_op_is_called_elsewhere_is_said_to_be_no_op(
    body: str, text: str, advice: str
) -> None:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(f"model m(balance=0.1, width=3) {{ input x: float[6, 8] aux_loss = x {body} output x }}")
    (only,) = caught.value.diagnostics
    assert only.code == "MG218" and only.text().endswith(f"is {text}, not an op"), only.text()
    assert advice in only.advice()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("repeat l[i] in 0..3 { v = x -> relu }", "repeat"),
        ("for i in 0..3 { repeat l[i] in 0..3 { v = x -> relu } }", "for"),
        ("if 1 > 2 { v = x -> relu }", "if"),
        ("scan x as s with h: float[8] { v = h + s h = v yield h } as z", "scan"),
        ("scan x as s with v: float[8] { v = v + s yield v } as z", "scan"),
    ],
)
@pytest.mark.parametrize("use", ["y = v -> linear(3)", "y = x -> linear(3) -> v", "y = x -> e by v"])
def test_a_name_that_a_body_has_for_itself_is_said_to_be_of_that_body(body: str, kind: str, use: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(f"model m() {{ input x: float[6, 8] pool e[4] = linear(8) {body} {use} output y }}")
    (only,) = caught.value.diagnostics
    assert (only.code, only.text()) == ("MG201", f'"v" is bound only inside the {kind}')


@pytest.mark.parametrize("body", ["repeat l[i] in 0..3 { v = v -> relu }", "for i in 0..3 { v = v -> tanh }"])
def test_a_name_that_is_bound_before_a_loop_has_its_last_value(body: str) -> None:
    modgraph.loads(f"model m() {{ input x: float[6, 8] v = x {body} y = v -> linear(3) output y }}")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("module e = linear(8) y = (x -> e) * e.weight", 'the module "e"'),
        ("pool e[3] = linear(8) y = (x -> e -> mean) * e.gates", 'the pool "e"'),
        ("y = x * x.T", "float[6, 8]"),
    ],
)
def test_a_dot_behind_what_is_no_router(text: str, what: str) -> None:
    with pytest.raises(ModgraphError) as caught:
        modgraph.loads(f"model m() {{ input x: float[6, 8] {text} output y }}")
    (only,) = caught.value.diagnostics
    assert only.code == "MG218" and what in only.text() and "router is needed" not in only.text()


def test_explain_knows_the_words_of_the_language_and_is_short_without_a_word(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain"]) == 0
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) < 60, "an overview fits a screen or two"
    assert not [name for name in (*Op.registry, "loss", "repeat", "noisy_top_k", "npz") if name not in printed]
    assert main(["explain", "loss"]) == 0
    assert "loss mse(y, x)" in capsys.readouterr().out
    assert main(["explain", "scatter"]) == 1
    assert "no op here writes at places that are data" in capsys.readouterr().err
    assert main(["explain", "lossy"]) == 1
    assert "less" not in capsys.readouterr().err
