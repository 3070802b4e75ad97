"""Checks out other revisions of this repository, and runs their modgraph in processes of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent


def every_spec() -> list[str]:
    """List the specs of the project and of its zoo, as paths in the repository."""
    paths = (path for folder in ("specs", "specs/zoo") for path in HERE.glob(f"{folder}/*.mod"))
    return sorted(str(path.relative_to(HERE)) for path in paths)


@contextlib.contextmanager
def revision(name: str) -> Iterator[Path]:
    """Check out another revision into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", tree, name], cwd=HERE, check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=HERE, check=True)


def run_in(tree: Path, script: str, *arguments: str) -> Any:
    """Run a script with the modgraph of a folder, and return the JSON that it prints. Raises `SystemExit` if it
    fails."""
    folders = (tree, tree / "grammar", tree / "export" / "runtime", tree / "export" / "web")
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, script, "--child", *arguments]
    done = subprocess.run(command, cwd=tree, env=surroundings, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])
