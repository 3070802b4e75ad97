"""Updates `docs/speed.md`: runs each command on the page, and puts its output below it.

    python benchmarks/speed.py [--only WORD …] [--quick]

Commands run one after another, for forty minutes on an idle machine of two cores; `--only` selects those that contain a
word. The file is written after each command, so an interruption keeps earlier results. `--quick` prints the first one
and writes nothing.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys

from options import parse_options
from trees import HERE

PAGE = HERE / "docs" / "speed.md"
BLOCK = re.compile(
    r"(?<=^```console\n)\$ (?P<command>python benchmarks/.*)\n(?P<output>(?:(?!```).*\n)*)", re.MULTILINE
)


def output_of(command: str, *more: str) -> str:
    """Run a benchmark, and return its output. Raises `SystemExit` if it fails."""
    arguments = [sys.executable, *shlex.split(command)[1:], *more]
    done = subprocess.run(arguments, cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD")
    options = parse_options(parser, only=["agreement"])
    commands = [found["command"] for found in BLOCK.finditer(PAGE.read_text())]
    for command in (each for each in commands if any(word in each for word in options.only)):
        output = output_of(command, *["--quick"] * options.quick)
        print(f"$ {command}\n{output}", flush=True)
        if options.quick:
            return
        page = PAGE.read_text()
        place = next(found for found in BLOCK.finditer(page) if found["command"] == command)
        PAGE.write_text(f"{page[: place.start('output')]}{output}{page[place.end('output') :]}")


if __name__ == "__main__":
    main()
