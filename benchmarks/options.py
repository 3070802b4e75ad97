"""Options of all benchmarks."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any


def parse_options(parser: argparse.ArgumentParser, **quick: Any) -> argparse.Namespace:
    """Parse the options; `--quick` makes these values the defaults, and puts runs into a temporary folder."""
    parser.add_argument("--quick", action="store_true", help="run for seconds only, as a test")
    if "--quick" in sys.argv[1:]:
        parser.set_defaults(**quick)
        if parser.get_default("out") is not None:
            folder = tempfile.TemporaryDirectory()
            parser.set_defaults(out=Path(folder.name), folder_of_runs=folder)
    return parser.parse_args()
