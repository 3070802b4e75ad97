"""Routers written in the language at random: every form of their routes, against sums over all modules and tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import event, given
from hypothesis import strategies as st
from torch import Tensor

import modgraph
from modgraph.backends.torch import Model
from tests.nn.by_router import DIM, given_by, lowerings_of, messages_of, randomised
from tests.ordinary_run import some_examples

SCORES = {
    "linear": "x -> linear(p)",
    "keys": "(x, keys) -> contract",
    "cosine": "((x -> unit, keys -> unit) -> contract) / 0.3",
    "noisy": "((x, keys) -> contract) + ((x -> linear(p)) -> normal_noise(0.5))",
    "mixed": "((x, keys) -> contract) * scale + bias",
}
CHOICES = {
    "top_k": ("scores -> top_k(2)", ("product", "among", "plain")),
    "above": ("scores -> above(0.1)", ("product", "among", "plain")),
    "senders": ("scores -> top_k(2, axis=tokens)", ("product", "among senders", "plain")),
    "capacity": ("(scores, scores -> top_k(2)) -> within_capacity(0.75, k=2)", ("product", "among", "plain")),
    "": ("", ("soft", "raw", "soft senders")),
}
GATES = {
    "product": "(scores -> softmax) * chosen",
    "among": "(scores, chosen) -> masked_softmax",
    "among senders": "(scores, chosen) -> masked_softmax(axis=tokens)",
    "plain": "scores * chosen",
    "soft": "scores -> softmax",
    "raw": "scores",
    "soft senders": "scores -> softmax(axis=tokens)",
}
SIZES, LENGTH = {"time": 4}, torch.tensor([4, 0, 2])


@dataclass(frozen=True)
class Case:
    """A definition, and what is sent by it: its axes before the message, the last of them that of the tokens."""

    axes: tuple[str, ...]
    scores: str
    choice: str
    gates: str
    modules: str
    over_tokens: bool
    extra: bool
    tokens: bool  # the definition speaks of them

    @property
    def definition(self) -> str:
        axes, choice = "tokens, " if self.tokens else "", CHOICES[self.choice][0]
        lines = [
            f"input x: float[{axes}dim]",
            f"input hint: float[{axes}2]" if self.extra else "",
            "weight keys: float[p, dim] = normal(0.5)",
            "weight scale: float = ones" if self.scores == "mixed" else "",
            "weight bias: float[p] = zeros" if self.scores == "mixed" else "",
            f"scores = {SCORES[self.scores]}",
            "scores = scores + (hint -> linear(p))" if self.extra else "",
            f"chosen = {choice}" if choice else "",
            f"gates = {GATES[self.gates]}",
            "record gates, scores: logits" + (", selected: choice = chosen" if choice else ""),
            f"y = x -> p by gates{' over tokens' if self.over_tokens else ''}",
            "output y",
        ]
        return "router mine() for p {\n" + "\n".join(f"  {line}" for line in lines if line) + "\n}\n"

    @property
    def text(self) -> str:
        outer = "".join(f"{axis}, " for axis in self.axes)
        hint = f"input hint: float[{outer}2]" if self.extra else ""
        return f"""{self.definition}model m() {{ input x: float[{outer}{DIM}] {hint} pool p[3] = {self.modules}
          router r = mine y = x -> p by r{"(hint)" if self.extra else ""} output y }}"""

    def inputs(self) -> dict[str, Tensor]:
        sizes, generator = [SIZES.get(axis) or int(axis) for axis in self.axes], torch.Generator().manual_seed(0)
        widths = {"x": DIM} | ({"hint": 2} if self.extra else {})
        return {
            name: torch.randn(3, *sizes, width, dtype=torch.float64, generator=generator).requires_grad_()
            for name, width in widths.items()
        }

    @property
    def padding(self) -> Tensor:
        """True where a token is padding: [3, …, 1], of one for each axis."""
        found = torch.zeros(3, *[1] * len(self.axes), 1, dtype=torch.bool)
        for at, axis in enumerate(self.axes, start=1):
            if axis == "time":
                past = torch.arange(SIZES[axis]) >= LENGTH[:, None]
                found = found | past.reshape(
                    [3, *[-1 if each == at else 1 for each in range(1, len(self.axes) + 1)], 1]
                )
        return found


@st.composite
def cases(draw: st.DrawFn) -> Case:
    axes = draw(st.sampled_from([(), ("3",), ("time",), ("2", "3"), ("2", "time"), ("time", "3")]))
    tokens = draw(st.booleans())
    over = tokens and draw(st.booleans())
    choice = draw(st.sampled_from([each for each in CHOICES if (tokens or each != "senders") and not (over and each)]))
    gates = draw(st.sampled_from([each for each in CHOICES[choice][1] if tokens or "senders" not in each]))
    modules = draw(st.sampled_from(["linear(2)", "linear(2) -> tanh", "[linear(2), linear(2) -> tanh, linear(2)]"]))
    scores, extra = draw(st.sampled_from(list(SCORES))), draw(st.booleans())
    return Case(axes, scores, choice, gates, modules, over, extra, tokens)


def expected_of(case: Case, x: Tensor, gates: Tensor, model: Model) -> Tensor:
    """Σ gates f(x) over all modules, or over all tokens."""
    messages = messages_of(model, x.masked_fill(case.padding, 0))
    gates = gates if case.axes else gates.squeeze(-2)
    weighted = messages * gates.unsqueeze(-1)
    if not case.over_tokens:
        return weighted.sum(-2)
    return weighted.sum(-3) if case.axes else weighted


@some_examples(25)
@given(case=cases(), training=st.booleans())
def test_every_lowering_of_a_router_in_text_is_the_sum_over_all(case: Case, training: bool) -> None:
    program, found = modgraph.loads(case.text), []
    lowerings = lowerings_of(program)
    event(f"{'/'.join(lowerings)} {'tokens' if case.over_tokens else 'modules'}")
    for lowering in (None, *lowerings):
        model = program.build(lowering=lowering).double().train(training)
        randomised(model, 1)
        torch.manual_seed(0)
        inputs = case.inputs()
        given = given_by(model, **inputs, length=LENGTH if "time" in case.axes else None)
        expected = expected_of(case, inputs["x"], given.records["gates"], model)
        torch.testing.assert_close(given.value, expected, atol=1e-12, rtol=0)
        read = [*inputs.values(), *model.parameters()]
        ours, theirs = (
            torch.autograd.grad(y.square().sum(), read, retain_graph=True, materialize_grads=True)
            for y in (given.value, expected)
        )
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)
        found.append([given.value, *given.records.values(), *ours])
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], atol=1e-10, rtol=0)
