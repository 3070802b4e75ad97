"""Going on with a run as another spec says, from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from modgraph.api.run import Run
from modgraph.store.run_directory import RunDirectory
from modgraph.training.migration import plan_migration
from modgraph.training.stored_run import StoredRun


def migrate(
    run: Run | str | Path,
    to: str | Path,
    *,
    out: str | Path,
    recipe: str | Path | Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
    fresh: Sequence[str] = (),
    restart: bool = False,
) -> Run:
    """Carry weights and the state of their optimizer over to another spec: a new run in `out`, as `modgraph migrate`
    makes it, which stands where the old one does. `Run.resume()` goes on with it.

    `to` is the path of the spec, `recipe` another recipe than the run's, `overrides` set its dotted keys and the spec's
    parameters. `fresh` names weights that begin anew, `*` stands for anything; with `restart` the new run begins at
    epoch 0. `modgraph.diff(run, to)` shows beforehand what becomes of each weight.

    Raises `ModgraphError` where nothing is carried over, and `TypeError` for values of another kind.
    """
    path = run.path if isinstance(run, StoredRun) else run
    for name, value in (("run", path), ("to", to)):
        if not isinstance(value, str | Path):
            raise TypeError(f"migrate takes a run and the path of a spec, not a {type(value).__name__} as {name}")
    found = plan_migration(path, to, out, recipe, overrides, fresh, "overrides")
    with found.begin(out, restart) as engine:
        found.announce(engine)
    return Run(RunDirectory(Path(out)))
