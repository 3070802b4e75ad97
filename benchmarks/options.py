"""What the options of all benchmarks share."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any


def parsed(parser: argparse.ArgumentParser, **quick: Any) -> argparse.Namespace:
    """The options; with `--quick` these values are the defaults, and runs lie in a folder that will be gone."""
    parser.add_argument("--quick", action="store_true", help="in seconds: shows that it runs, and nothing else")
    if "--quick" in sys.argv[1:]:
        parser.set_defaults(**quick)
        if parser.get_default("out") is not None:
            folder = tempfile.TemporaryDirectory()
            parser.set_defaults(out=Path(folder.name), folder_of_runs=folder)
    return parser.parse_args()
