"""Which weights have an axis that can grow: of a pool's modules, along which they are turned too, or of classes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modgraph.ir.graph import Graph
from modgraph.ir.node import PoolNode, TargetNode
from modgraph.ir.weights import weights_of


@dataclass(frozen=True)
class ModuleAxis:
    """The place of an axis of modules or classes in a weight, what it is called, the pools along it, and the targets
    whose labels are its places. `others` are such axes of the weight besides this one, along which it cannot grow."""

    axis: int
    name: str
    pools: tuple[PoolNode, ...] = ()
    targets: tuple[TargetNode, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def old(self) -> int:
        """How many places there were before the first was added to any of the pools or targets."""
        targets = ((target.types[0].size or 0) - target.grown for target in self.targets)
        return min((*(pool.size - pool.grown for pool in self.pools), *targets))

    @property
    def grown(self) -> int:
        """How many were added since."""
        return max((*(pool.grown for pool in self.pools), *(target.grown for target in self.targets)))


def module_axes(graph: Graph) -> dict[str, ModuleAxis]:
    """The weights that have one, by name, in scans and in the modules of pools too."""
    along = _along(graph)
    found: dict[str, ModuleAxis] = {}
    for weight in weights_of(graph):
        names = [axis.name for axis in weight.axes]
        first, *others = [name for name in names if name in along] or [""]
        if first:
            found[weight.name] = replace(along[first], axis=names.index(first), others=tuple(others))
    return found


def _along(graph: Graph) -> dict[str, ModuleAxis]:
    """What lies along each axis that can grow, by its name."""
    found: dict[str, ModuleAxis] = {}
    for pool in graph.pools().values():
        known = found.setdefault(pool.axis.name, ModuleAxis(0, pool.axis.name))
        found[known.name] = replace(known, pools=(*known.pools, pool))
    for target in graph.of_kind(TargetNode):
        classes = target.types[0].classes
        if classes is not None and classes.name:
            known = found.setdefault(classes.name, ModuleAxis(0, classes.name))
            found[known.name] = replace(known, targets=(*known.targets, target))
    return found
