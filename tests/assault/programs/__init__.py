"""Programs from the whole language: number n is a function of n alone, and modgraph finds nothing wrong with it."""

from tests.assault.programs.program import Written, program

__all__ = ["Written", "program"]
