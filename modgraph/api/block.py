"""A block or a router of a spec as a torch module by itself, for models that are written in torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from modgraph.api.block_source import rename_weights
from modgraph.api.block_text import OUT, BlockText, source_name
from modgraph.api.errors import NeedsTypes
from modgraph.backends.torch import Computed, Model
from modgraph.diagnostics import ModgraphError, list_names
from modgraph.elaboration.errors import DoesNotFit
from modgraph.program import Program, loads


class Block(nn.Module):
    """A block, or a router with its pool, as a module. Its weights have the names that they have in a spec, below the
    block.

    Called with its inputs, batch first, positional or by name, it returns its output, or a tuple of its outputs. An
    axis of any length takes the lengths of examples by name (`tokens_length`, [B]); without them all are full. After a
    call `losses` has the losses that the block declares, such as a balance of experts, for the training to add.

    `program` is the model that holds nothing but the block, whose `cost()` is the block's.
    """

    def __init__(self, program: Program, model: Model, below: str) -> None:
        super().__init__()
        inner = model.get_submodule(below) if below in dict(model.named_modules()) else nn.Module()
        inner = model if not below else inner
        self._model_parts = (
            program,
            model,
            f"{below}." if below else "",
        )  # not a submodule, which would have other names
        for name in ("_parameters", "_buffers", "_modules"):
            self.__dict__[name] = getattr(inner, name)
        self._computed: dict[str, Tensor] = {}

    @property
    def program(self) -> Program:
        """The spec that holds the block alone."""
        return self._model_parts[0]

    @property
    def losses(self) -> dict[str, Tensor]:
        """The losses of the last call by name, each the mean over the batch, with gradients."""
        return dict(self._computed)

    @property
    def loss(self) -> Tensor:
        """The sum of the losses of the last call, zero where the block declares none."""
        found = [*self._computed.values()]
        return torch.stack(found).sum() if found else torch.zeros(())

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor | tuple[Tensor, ...]:
        """The output, or the outputs in the order of the block. Raises `TypeError` and `ValueError` for inputs that do
        not fit its types."""
        found = tuple(self.compute(*inputs, routing=False, **named).outputs.values())
        return found[0] if len(found) == 1 else found

    def compute(self, *inputs: Tensor, routing: bool = True, **named: Tensor) -> Computed:
        """Outputs, losses and, with `routing`, what routers record, all by name."""
        _, model, below = self._model_parts
        computed = model.compute(model.bind_inputs(inputs, named), losses=bool(model.graph.losses), routing=routing)
        short = below.rpartition(".")[0].rpartition(".")[2] + "."  # what records are called below, if anything
        losses = {name.removeprefix(below): value for name, value in computed.losses.items()}
        records = {name.removeprefix(below).removeprefix(short): value for name, value in computed.routing.items()}
        self._computed = losses
        return Computed(computed.outputs, losses, records)

    def pytorch_source(self, lowering: str | None = None) -> str:
        """The block as one file of PyTorch that needs torch alone; its last class takes `block.state_dict()`.

        Its `forward` returns what the block returns, and where the block declares losses also these by name. Raises
        `ModgraphError` where a layer cannot be copied.
        """
        program, _, below = self._model_parts
        source = program.pytorch_source(lowering)
        return rename_weights(source, below.removesuffix(".")) if below and self.state_dict() else source

    def train(self, mode: bool = True) -> Self:
        """As for any module; where training ends, states take their pending values first."""
        self._model_parts[1].train(mode)
        self.training = mode
        return self

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """As for any module, after states have taken their pending values."""
        self._model_parts[1].settle()
        return super().state_dict(*args, **kwargs)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._model_parts[1].settle()
        super()._load_from_state_dict(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_computed": {}}  # losses of a call are no part of a copy

    def _get_name(self) -> str:
        return "".join(word.capitalize() for word in self._model_parts[0].ir.name.removesuffix("_alone").split("_"))


def block(path: str | Path | None, name: str, /, *, seed: int | None = None, **given: Any) -> Block:
    """A block or router of a file as a `torch.nn.Module`, with fresh weights.

    Weights are sampled as those of torch's own modules are: two blocks differ, and `torch.manual_seed` fixes them. An
    integer `seed` fixes the weights of this block alone.

    `given` are the parameters of the block, `dim=64`, and where its text leaves them open the types of its inputs:
    `x="float[tokens, 64]"`, without the batch, or an example, `x=torch.zeros(1, 9, 64)`, with it; axes that may have
    any length then have any. A router takes what its pool is made of by its own word for the pool, and how many:
    `modgraph.block("routers.mod", "mine", p="linear(64) -> relu", modules=4, x="float[tokens, 64]")`. With None as the
    path, a router of the vocabulary.

    Raises `ModgraphError` for a file, a name or an argument that does not fit, and `TypeError` for values of another
    kind.
    """
    if not isinstance(path, str | Path | None) or not isinstance(name, str):
        what = type(name).__name__ if isinstance(path, str | Path | None) else type(path).__name__
        raise TypeError(f'block takes a path and a name, modgraph.block("parts.mod", "swiglu"), not {what}')
    text = BlockText.read(path, name, _check_values(given))
    program = _load(text)
    if seed is None:
        seed = int(torch.randint(2**62, (), device="cpu"))
    return Block(program, program.build(seed=seed), "" if text.is_router else _path_of_use(program, text.name))


def _check_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as a spec has them. Raises `TypeError` for what no spec has."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if not isinstance(value, bool | int | float | str | list | tuple | Tensor):
            wanted = "a constant of a spec, a type or an example"
            raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}")
        found[name] = list(value) if isinstance(value, tuple) else value
    return found


def _load(text: BlockText) -> Program:
    """The spec of a block with as few lengths fixed as it takes. Raises `ModgraphError`."""
    first: ModgraphError | None = None
    has_examples = any(isinstance(each, Tensor) for each in text.types.values())
    for fixed in (0, 1, None) if has_examples else (0,):
        try:
            return loads(text.spec(fixed), name=source_name(text))
        except ModgraphError as error:
            first = error
    assert first is not None, "it was tried"
    inputs = [each for each in text.open_inputs() if each not in text.types]
    if inputs and all(isinstance(each, DoesNotFit) for each in first.diagnostics):
        missing = NeedsTypes(block=text.name, inputs=list_names(inputs), input=inputs[0])
        raise ModgraphError([missing, *first.diagnostics]) from first
    raise first


def _path_of_use(program: Program, name: str) -> str:
    """The path of the weights of the one use of a block."""
    paths = {call.weights for node in program.ir for call in node.calls if call.weights.rpartition(".")[2] == name}
    return min(paths, key=len, default=f"{OUT}.{name}")
