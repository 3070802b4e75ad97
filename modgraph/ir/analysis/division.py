"""How pools are divided among processes: each member of a group holds the modules at some places of each pool."""

from __future__ import annotations

from modgraph.ir.graph import Graph
from modgraph.ir.node import PoolNode
from modgraph.ir.weights import weights_of


def divide_places(size: int, members: int) -> list[range]:
    """Divide the places of the modules of a pool among members, in order; their numbers differ by one at most.

    A pool with fewer modules than members is not divided: each member holds all of it.
    """
    if size < members:
        return [range(size)] * members
    return [range(at * size // members, (at + 1) * size // members) for at in range(members)]


def list_divided_pools(graph: Graph, members: int) -> list[PoolNode]:
    """List the pools that several members divide. Pools inside modules belong to their module."""
    pools = graph.pools().values()
    return [pool for pool in pools if members > 1 and pool.size >= members and not pool.is_large]


def find_holders(graph: Graph, members: int) -> dict[str, int]:
    """Map the name of each weight of a module of a divided pool to the member that holds it. All hold the others."""
    prefixes = {
        f"{pool.name}.{place}.": member
        for pool in list_divided_pools(graph, members)
        for member, places in enumerate(divide_places(pool.size, members))
        for place in places
    }
    names = [weight.name for weight in weights_of(graph)] if prefixes else []
    found = {name: _find_prefix(name, prefixes) for name in names}
    return {name: member for name, member in found.items() if member is not None}


def _find_prefix(name: str, prefixes: dict[str, int]) -> int | None:
    """Find the member of the prefix of a name that ends with a dot."""
    places = (at + 1 for at, letter in enumerate(name) if letter == ".")
    return next((prefixes[name[:end]] for end in places if name[:end] in prefixes), None)
