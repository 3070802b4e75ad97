"""Reports that a process of a training has ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch.distributed as dist

from modgraph.diagnostics import ModgraphError
from modgraph.training.errors import ProcessLost

OF_PEERS = ("gloo/", "by peer", "broken pipe", "nccl")  # in the text of plain errors of torch's transports


@contextmanager
def report_lost_peers(run: Path) -> Iterator[None]:
    """Raises `ModgraphError` where one of several processes cannot reach another, which has ended or was killed."""
    try:
        yield
    except RuntimeError as error:
        if int(os.environ.get("WORLD_SIZE", 1)) == 1 or not _is_of_peer(error):
            raise
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModgraphError([ProcessLost(reason=_short(reason), path=str(run))]) from error


def _is_of_peer(error: RuntimeError) -> bool:
    return isinstance(error, dist.DistError) or any(words in str(error).lower() for words in OF_PEERS)


def _short(reason: str) -> str:
    """The message of a transport, without the place in its sources and without its advice."""
    said = reason.rpartition("] ")[2] if reason.startswith("[") else reason
    return said.partition(". ")[0].rstrip(".").strip()[:200]
