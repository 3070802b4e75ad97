"""What a command costs that only reads a spec: processor time of whole processes, in ratios.

    python benchmarks/check.py [--quick] [--rounds 7]

Every process runs in turn, once in each round, and the least of its times counts. Bytecode is kept from a first run.
What `check` is divided by imports the libraries that the compiler is built on, and nothing else.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from options import parse_options

FOLDER = Path(__file__).parents[1]
BARE = ("-c", "import lark, networkx, yaml")


def check(spec: str, *parameters: str) -> tuple[str, ...]:
    """The arguments of Python that check a spec."""
    return ("-m", "modgraph", "check", f"specs/{spec}.mod", *(part for each in parameters for part in ("-s", each)))


# what is measured, and what it is divided by
RATIOS = {
    "modgraph --version": (("-m", "modgraph", "--version"), BARE),
    "check smn": (check("smn"), BARE),
    "check gmoe": (check("gmoe"), BARE),
    "check sema": (check("sema"), BARE),
    "check mixtral, 96 layers by 2": (
        check("zoo/mixtral", "num_hidden_layers=96"),
        check("zoo/mixtral", "num_hidden_layers=2"),
    ),
    "check smn, 500 rounds by 10": (check("smn", "iterations=500"), check("smn", "iterations=10")),
}


def seconds(arguments: tuple[str, ...], folder: str) -> float:
    """Processor time of a Python process, which must succeed."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], cwd=FOLDER, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    options = parse_options(parser, rounds=1)
    processes = dict.fromkeys(each for pair in RATIOS.values() for each in pair)
    with tempfile.TemporaryDirectory() as folder:
        for each in processes:
            seconds(each, folder)
        rounds = [{each: seconds(each, folder) for each in processes} for _ in range(options.rounds)]
    least = {each: min(times[each] for times in rounds) for each in processes}
    for name, (process, other) in RATIOS.items():
        print(f"{name:32} {least[process]:6.3f} s {least[process] / least[other]:6.2f}")


if __name__ == "__main__":
    main()
