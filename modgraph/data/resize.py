"""Images in another size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def resized(images: NDArray[Any], size: tuple[int, int]) -> NDArray[np.float32]:
    """Images [count, height, width] from 0 to 1, smoothly in another height and width."""
    import torch  # at use: a recipe is read without
    from torch.nn.functional import interpolate

    batch = torch.from_numpy(np.asarray(images, np.float32)).unsqueeze(1)
    smooth = interpolate(batch, size=size, mode="bilinear", antialias=True)
    result: NDArray[np.float32] = smooth.squeeze(1).clamp(0, 1).numpy()
    return result
