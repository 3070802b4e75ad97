"""`python -m modgraph` is the command `modgraph`."""

import sys

from modgraph.cli import main

if __name__ == "__main__":
    sys.exit(main())
