"""Rising numbers in few words."""

from __future__ import annotations

from collections.abc import Sequence


def ranges(numbers: Sequence[int]) -> str:
    """Rising numbers in few words: `0-7, 9, 11`, and `1, 3 … 11` for every second one."""
    runs: list[list[int]] = []
    for number in numbers:
        run = runs[-1] if runs else []
        if run and (len(run) == 1 or number - run[-1] == run[1] - run[0]):
            run.append(number)
        else:
            runs.append([number])
    texts = []
    for run in runs:
        if len(run) > 2 and run[1] == run[0] + 1:
            texts.append(f"{run[0]}-{run[-1]}")
        else:
            texts += [f"{run[0]}, {run[1]} … {run[-1]}"] if len(run) > 3 else map(str, run)
    return ", ".join(texts)
