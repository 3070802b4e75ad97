"""Message passing of torch_geometric, which leaves nothing behind."""

from __future__ import annotations

import sys
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from torch_geometric.nn import MessagePassing as PlainMessagePassing


class MessagePassing(PlainMessagePassing):  # type: ignore[misc]
    """torch_geometric's base class, without the files it leaves in the temporary folder.

    It generates a module of Python for each class, which is imported once and never read again. It finds the text
    `self.propagate(` in the source of the class: so subclasses are static, have unique names, and call it on `self`.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{"aggr": "add", "node_dim": 0, **settings})
        for method in ("propagate", "edge_updater"):
            generated = sys.modules.get(f"{type(self).__module__}_{type(self).__name__}_{method}")
            if generated is not None and generated.__file__ is not None:
                Path(cache_from_source(generated.__file__)).unlink(missing_ok=True)
                Path(generated.__file__).unlink(missing_ok=True)
