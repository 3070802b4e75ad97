"""Where a continual training is, as plain facts of a checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from modgraph.training.course import Facts

LEARN, DETECT, DONE = "learn", "detect", "done"


@dataclass(frozen=True)
class Position:
    """The task at work, what is done in it and the phase where it learns, growth nodes of which it was said in this
    task, how many times batches were looked at in all and how many lines of edits there are, and after each task that
    has ended the accuracies on all so far."""

    task: int = 0
    doing: str = LEARN
    phase: int = 0
    expanded: tuple[str, ...] = ()
    looks: int = 0
    edits: int = 0
    accuracies: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def read(cls, at: Facts, tasks: int, phases: int) -> Position:
        """What a checkpoint tells. Raises `KeyError`, `TypeError` or `ValueError` where it cannot be."""
        facts = dict(at)
        rows = tuple(tuple(float(each) for each in row) for row in facts.pop("accuracies"))
        found = cls(**{**facts, "expanded": tuple(facts["expanded"]), "accuracies": rows})
        if not (0 <= found.task < tasks and 0 <= found.phase < phases and found.doing in (LEARN, DETECT, DONE)):
            raise ValueError(f"it is at {facts}, of {tasks} tasks with {phases} phases")
        return found

    def facts(self) -> dict[str, Any]:
        """As JSON has it."""
        rows = [list(row) for row in self.accuracies]
        return {**asdict(self), "expanded": list(self.expanded), "accuracies": rows}
