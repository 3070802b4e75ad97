"""Python with -OO, which leaves out assertions and docstrings: every command of the front end works alike."""

from __future__ import annotations

import subprocess
import sys

COMMANDS = """
import contextlib, io
from modgraph.cli import main

def run_command(*arguments):
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
    return code, text.getvalue()

for command in ("check", "show", "cost", "fmt --check"):
    code, text = run_command(*command.split(), "specs/smn.mod")
    assert_(code == 0, text)
code, text = run_command("--help")
assert_(code == 0 and "check" in text, text)
code, text = run_command("explain", "conv")
assert_(code == 0 and "op conv(width" in text, text)
assert_("No explanation" in text, text)
assert_(run_command("check", "none.mod")[0] == 1, "none.mod")
from modgraph.ir import UnreadableGraph, from_json, to_json
from modgraph.program import load
record = to_json(load("specs/smn.mod").ir)
record["nodes"].append(record["nodes"][0])
try:
    from_json(record)
except UnreadableGraph as error:
    assert_("another node is called so" in str(error), str(error))
else:
    assert_(False, "a node twice was read")
"""
HEAD = """
import sys

def assert_(holds, text):
    if not holds:
        sys.exit(text)
"""


def test_the_front_end_runs_without_assertions_and_docstrings() -> None:
    done = subprocess.run([sys.executable, "-OO", "-c", HEAD + COMMANDS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
