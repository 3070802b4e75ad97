"""Images in the size and the channels that a spec wants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modgraph.data.declaration import OnDisk, Scale
from modgraph.data.errors import DataDoesNotFit
from modgraph.diagnostics import ModgraphError
from modgraph.ir import Graph


def resized(images: NDArray[Any], size: tuple[int, int]) -> NDArray[np.float32]:
    """Images [count, height, width] from 0 to 1, smoothly in another height and width."""
    import torch  # at use: a recipe is read without
    from torch.nn.functional import interpolate

    batch = torch.from_numpy(np.asarray(images, np.float32)).unsqueeze(1)
    smooth = interpolate(batch, size=size, mode="bilinear", antialias=True)
    result: NDArray[np.float32] = smooth.squeeze(1).clamp(0, 1).numpy()
    return result


def shape_of_grey_images(graph: Graph) -> tuple[int, int, int]:
    """Channels, height and width of the input `image` for grey images: one channel, or three alike. Raises as below."""
    type_ = graph.input_types.get("image")
    return shape_of_images(graph, 3 if type_ is not None and type_.dimensions[:1] == (3,) else 1)


def shape_of_images(graph: Graph, channels: int) -> tuple[int, int, int]:
    """Channels, height and width of the input `image`. Raises `ModgraphError` if it cannot hold these images."""
    type_ = graph.input_types.get("image")
    if type_ is not None and type_.dtype == "float":
        match type_.dimensions:
            case (int(found), int(height), int(width)) if found == channels:
                return found, height, width
    given = "no such input" if type_ is None else str(type_)
    way_out = f"declare: input image: float[{channels}, HEIGHT, WIDTH]"
    reason = f'the input "image" is to be float[{channels}, height, width]; the spec has {given}'
    raise ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out)])


@dataclass(frozen=True)
class StoredImages(OnDisk):
    """Images by their bytes [count, channels, height, width], smoothly in the size of `shape` where they have another;
    grey ones are the same in every channel of it."""

    pixels: NDArray[np.uint8]
    shape: tuple[int, ...]
    scale: Scale

    def take(self, indices: NDArray[Any]) -> StoredImages:
        return replace(self, pixels=self.pixels[indices])

    def read(self, indices: NDArray[Any] | slice) -> NDArray[np.float32]:
        light = self.pixels[indices].astype(np.float32) / np.float32(255)
        count, channels, *size = light.shape
        if size != [*self.shape[1:]]:
            planes = resized(light.reshape(-1, *size), (self.shape[1], self.shape[2]))
            light = planes.reshape(count, channels, *self.shape[1:])
        whole = np.broadcast_to(light, (count, *self.shape))
        return np.ascontiguousarray(self.scale.scaled(whole))

    def digest(self) -> bytes:
        return sha256(np.ascontiguousarray(self.pixels).data).digest()
