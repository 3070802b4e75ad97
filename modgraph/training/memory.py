"""Tells when a training asks for more memory than there is, and for how much."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from modgraph_runtime.memory import in_words

from modgraph.diagnostics import ModgraphError
from modgraph.files import reason_of
from modgraph.training.errors import TooLargeForMemory

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
