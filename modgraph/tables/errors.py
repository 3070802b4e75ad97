"""Messages about many runs and their tables (MG92x)."""

from __future__ import annotations

from collections.abc import Iterable

from modgraph.diagnostics import Diagnostic

TRAIN_SOME = "train some, modgraph train SPEC or modgraph sweep SPEC, or name another folder: modgraph runs DIR"


class BadSweepRecord(Diagnostic, code="MG920"):
    """A sweep keeps its points in `sweep.json` and its failures in `failures.jsonl`. Tables read both."""

    message = 'cannot read "{path}": {reason}'
    help = "write it again with the command of the sweep: modgraph sweep … --out {folder}"


class NoRuns(Diagnostic, code="MG921"):
    """Tables need runs: folders that `modgraph train` or `modgraph sweep` wrote, below the folders that are named."""

    message = 'no runs in "{path}"{reason}'
    help = "{way_out}"
    reason = ""


class UnknownKey(Diagnostic, code="MG922"):
    """Tables, conditions and orders name keys that some run has: settings, metrics, costs, facts of its point."""

    message = 'no run has "{key}"{place}'
    help = "{suggestion}"
    place = ""


class BadCondition(Diagnostic, code="MG923"):
    """A condition compares a key with a value: `experts=4`, `test.accuracy>0.9`, `state!=finished`."""

    message = 'a condition must be KEY=VALUE, or with !=, <, <=, > or >=, not "{given}"'
    help = "for example: --where experts=4 --where 'test.accuracy>0.9'"


class NotANumber(Diagnostic, code="MG924"):
    """`<`, `<=`, `>` and `>=` compare numbers."""

    message = '"{given}" compares with {value}, which is no number'
    help = "compare with a number, {key}{sign}0.5, or with = and !="


class UnknownTable(Diagnostic, code="MG925"):
    """`--table` prints one of the tables that the file of a sweep lists."""

    message = 'unknown table "{name}"'
    help = "{suggestion}"


class UnknownRow(Diagnostic, code="MG926"):
    """`against` names the row against which the others are tested, by the value of its key."""

    message = 'no row is "{name}"'
    help = "{suggestion}"


class NothingFits(Diagnostic, code="MG927"):
    """The conditions leave no run, or none that is finished, which tables need."""

    message = "none of {count} runs {problem}"
    help = "{way_out}"

    @classmethod
    def explain_conditions(cls, count: int, conditions: Iterable[str]) -> NothingFits:
        """Explain that no run meets some conditions."""
        problem = f"meets {' and '.join(conditions) or 'the conditions'}"
        return cls(
            count=count, problem=problem, way_out="leave out a condition, or list the runs: modgraph runs --list"
        )


class NoRunToCompare(Diagnostic, code="MG929"):
    """`--compare` compares runs that are finished, or what unfinished ones have so far, on both sides."""

    message = '"{name}" has no run to compare: {states}'
    help = "name a run, a folder of runs, or a condition that some runs meet"


class NoCharts(Diagnostic, code="MG946"):
    """The charts of runs are curves of metrics and points of finished runs."""

    message = "none of {count} runs has metrics to draw"
    help = "wait for one, or list the runs: modgraph runs --list"
