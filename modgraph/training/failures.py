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
from modgraph_runtime.memory import in_words

from modgraph.diagnostics import ModgraphError
from modgraph.files import reason_of
from modgraph.training.errors import ProcessLost, TooLargeForMemory

BYTES = re.compile(r"you tried to allocate (\d+) bytes")  # what torch says of the processor's memory


@contextmanager
def memory_told(batch: int) -> Iterator[None]:
    """Raises `ModgraphError` where a training with a batch of this size finds no memory."""
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise ModgraphError([TooLargeForMemory(reason=reason_of(error), batch=_less(batch))]) from error
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise ModgraphError([TooLargeForMemory(reason=reason_of(error), batch=_less(batch))]) from error
    except RuntimeError as error:
        asked = BYTES.search(str(error))
        if asked is None:
            raise
        reason = f"it asks for {in_words(int(asked[1]))} at once"
        raise ModgraphError([TooLargeForMemory(reason=reason, batch=_less(batch))]) from error


def _less(batch: int) -> int:
    return max(1, batch // 2)


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
