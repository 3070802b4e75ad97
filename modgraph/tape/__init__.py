"""What a training step keeps in memory, counted from the declarations of ops and routers, without torch."""

from modgraph.tape.moments import Moments, moments
from modgraph.tape.tape import FLAG, FLOAT, INDEX, Entry, Storage, Tape, Value

__all__ = ["FLAG", "FLOAT", "INDEX", "Entry", "Moments", "Storage", "Tape", "Value", "moments"]
