"""Messages about continual trainings (MG720 to MG729)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NoTasks(Diagnostic):
    """A continual training takes the groups of one grouping of its data as tasks."""

    code = "MG720"
    message = 'train.algorithm.by: the data has no grouping "{name}" that could be the tasks'
    help = "{suggestion}"


class NoSuchLoss(Diagnostic):
    """A phase of a continual training names losses, with * for any letters, and the spec has none called so."""

    code = "MG721"
    message = 'train.algorithm.phases.{phase}.losses: no loss of the spec is called "{pattern}"'
    help = "{suggestion}"


class NoSuchWeight(Diagnostic):
    """`learns` names weights that go on learning in every task, with * for any letters, and the spec has none."""

    code = "MG722"
    message = 'train.algorithm.learns: no weight of the spec is called "{pattern}"'
    help = "{suggestion}"


class NoLossLeft(Diagnostic):
    """In the first task of a continual training there is nothing to learn in any of its phases."""

    code = "MG723"
    message = "no phase has anything to learn in the first task: the losses are computed from frozen weights alone"
    help = "leave what the first task is to train out of frozen {{ … }}"
