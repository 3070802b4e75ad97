"""Messages about many runs and their tables (MG92x)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class BadSweepRecord(Diagnostic, code="MG920"):
    """A sweep keeps its points in `sweep.json` and its failures in `failures.jsonl`. Tables read both."""

    message = 'cannot read "{path}": {reason}'
    help = "write it again with the command of the sweep: modgraph sweep … --out {folder}"


class NoRuns(Diagnostic, code="MG921"):
    """Tables need runs: folders that `modgraph train` or `modgraph sweep` wrote, below the folders that are named."""

    message = 'no runs in "{path}"{reason}'
    help = "{way_out}"
