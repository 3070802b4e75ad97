"""Names for what a program holds: plain ones, and legal ones that mean something else to Python or to torch."""

from __future__ import annotations

import builtins
import keyword
from random import Random

from torch import nn

from modgraph.backends.torch.source.text import reserve_names
from modgraph.ops import Op
from modgraph.syntax import keywords
from modgraph.vocabulary import list_router_names

FUNCTIONS = "len min max sum abs round exp log sqrt sin cos result_width message_width message_rank result_rank".split()
INITIALISERS = "zeros ones normal uniform".split()
SOMETIMES = "over where constant next state record require weight moved float token class length i j k".split()
TAKEN = {*keywords(), *Op.registry, *list_router_names(), *FUNCTIONS, *INITIALISERS, *SOMETIMES}
LONGEST = "a_name_of_" + "very_" * 40 + "many_letters"
MEANT_OTHERWISE = sorted(
    name
    for name in {
        *(each for each in dir(nn.Module) if each.isidentifier()),
        *(vars(nn.Module())),
        *keyword.kwlist,
        *dir(builtins),
        *reserve_names(),
        *("graph", "steps", "F", "torch", "nn", "math", "losses", "training", "T_destination", "device", "value"),
        *("forward", "compute", "batch", "of_a_user", "Module", "Model", "M", "m", "_", "__", "x_2", "x_", LONGEST),
    }
    if name not in TAKEN and len(name) <= 255
)
AXES = ("time", "words", "places", "row", "self", "lambda", "type", "T", "batch", "x", "head", "size")


class Names:
    """Names that are given once each. `odd` is how often one is given that means something else elsewhere."""

    def __init__(self, rng: Random, odd: float) -> None:
        self._rng, self._odd, self._given = rng, odd, set[str]()

    def fresh(self, stem: str) -> str:
        name = self._rng.choice(MEANT_OTHERWISE) if self._rng.random() < self._odd else stem
        if name in self._given or name == stem:
            name = f"{stem}{len(self._given)}"
        self._given.add(name)
        return name
