"""Reports what ends a training from outside: too little memory, or another process that is gone."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
from modgraph_runtime.files import in_words

from modgraph.diagnostics import ModgraphError
from modgraph.files import reason_of
from modgraph.training.errors import ProcessLost, TooLargeForMemory

BYTES = re.compile(r"you tried to allocate (\d+) bytes")  # what torch says of the processor's memory
OF_PEERS = ("gloo/", "by peer", "broken pipe", "nccl")  # in the text of plain errors of torch's transports


@contextmanager
def memory_told(batch: int) -> Iterator[None]:
    """Raises `ModgraphError` where a training with a batch of this size finds no memory."""
    try:
        yield
    except (MemoryError, OSError, RuntimeError) as error:  # among these torch's own
        asked = BYTES.search(str(error)) if isinstance(error, RuntimeError) else None
        of_memory = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not (of_memory or asked or getattr(error, "errno", None) == errno.ENOMEM):
            raise
        reason = f"it asks for {in_words(int(asked[1]))} at once" if asked and not of_memory else reason_of(error)
        raise ModgraphError([TooLargeForMemory(reason=reason, batch=max(1, batch // 2))]) from error


@contextmanager
def report_lost_peers(run: Path) -> Iterator[None]:
    """Raises `ModgraphError` where one of several processes cannot reach another, which has ended or was killed."""
    try:
        yield
    except RuntimeError as error:
        of_peer = isinstance(error, dist.DistError) or any(words in str(error).lower() for words in OF_PEERS)
        if int(os.environ.get("WORLD_SIZE", 1)) == 1 or not of_peer:
            raise
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        reason = reason.rpartition("] ")[2] if reason.startswith("[") else reason  # without the place in its sources
        short = reason.partition(". ")[0].rstrip(".").strip()[:200]
        raise ModgraphError([ProcessLost(reason=short, path=str(run))]) from error
