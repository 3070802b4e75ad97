"""What of a file's tensors becomes which weight: slices of stacks, axes in another order."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

from modgraph.training.start.weight_rule import Origin


def is_plain(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and tensor.dtype.is_floating_point


def fits(own: Tensor, tensor: Tensor, origin: Origin) -> bool:
    """Whether a tensor holds a weight: shapes are equal but for axes of one in front."""
    found = arranged(tensor, origin) if is_plain(tensor) else None
    if found is None:
        return False
    spare = found.dim() - own.dim()
    return spare >= 0 and found.shape[spare:] == own.shape and own.numel() == found.numel()


def arranged(tensor: Tensor, origin: Origin) -> Tensor | None:
    """A tensor of the file, its slice, with axes in the order of the weight's; None if it has not those axes."""
    arrangement = origin.arrangement
    if arrangement is None:
        return tensor
    if tensor.dim() != len(arrangement.there):
        return None
    if arrangement.stack is not None and origin.slice is not None:
        if origin.slice >= tensor.shape[arrangement.stack]:
            return None
        tensor = tensor.select(arrangement.stack, origin.slice)
    return tensor.permute(arrangement.order)


def left_over(found: Mapping[str, Tensor], origins: Collection[Origin]) -> list[Origin]:
    """The tensors that are no weight's, and slices of those that are taken apart."""
    taken = {(origin.tensor, origin.slice) for origin in origins}
    layouts = {origin.tensor: origin.arrangement for origin in origins if origin.arrangement is not None}
    left = [Origin(name) for name in sorted(found.keys() - {name for name, _ in taken})]
    for name, arrangement in sorted(layouts.items()):
        if arrangement.stack is not None and found[name].dim() == len(arrangement.there):
            length = found[name].shape[arrangement.stack]
            left += [Origin(name, None, at) for at in range(length) if (name, at) not in taken]
    return left
