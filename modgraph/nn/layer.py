"""The base of modules without weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import dataclass_transform

from torch import nn


@dataclass_transform(eq_default=False)
class Layer(nn.Module):
    """A module whose annotated fields are the arguments of its constructor."""

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        super().__init__()
