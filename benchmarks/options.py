"""Options that all benchmarks share."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any


def parse_options(parser: argparse.ArgumentParser, **quick: Any) -> argparse.Namespace:
    """The options; with `--quick` these values are the defaults, and runs go to a temporary folder."""
    parser.add_argument("--quick", action="store_true", help="run in seconds, only to show that it runs")
    if "--quick" in sys.argv[1:]:
        parser.set_defaults(**quick)
        if parser.get_default("out") is not None:
            folder = tempfile.TemporaryDirectory()
            parser.set_defaults(out=Path(folder.name), folder_of_runs=folder)
    return parser.parse_args()
