"""Messages about pools and routers."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class SelectsTooMany(Diagnostic):
    """A router sends each token to more modules than the pool has."""

    code = "MG203"
    message = 'router "{router}" selects k={k} of a pool of {size}'
    help = 'lower k, or raise the size of "{pool}"'
    example = (
        "model m() { input x: float[5, 4] pool p[2] = linear(4) router r = noisy_top_k(k=3) y = x -> p by r output y }"
    )


class PoolWithoutSize(Diagnostic):
    """A pool of modules of one kind says how many there are; a list of unlike modules says it by its length."""

    code = "MG227"
    message = 'pool "{name}" does not say how many modules it has'
    help = "write pool {name}[4] = …, or list unlike modules: pool {name} = [ …, … ]"
    example = "model m() { input x: float[4] pool p = linear(3) output x }"


class CannotGrow(Diagnostic):
    """A pool of modules of one kind can grow; `grow pool[2]` adds modules to it before it is first used."""

    code = "MG228"
    message = 'pool "{pool}" cannot grow here: {reason}'
    help = "{way_out}"
    example = "model m() { input x: float[4] pool p[2] = linear(3) y = x -> p -> mean grow p[1] output y }"


class PoolUsedOtherwise(Diagnostic):
    """A pool's modules are the same at each use, in each round of a `repeat` too: they take what the first use gave
    them."""

    code = "MG320"
    message = 'pool "{pool}" takes {takes} since its first use, and "{within}" gives it {found}'
    help = "give it {takes} each time, its own results in a loop too, or declare a pool for each use"
    example = (
        "model m() { input x: float[5, 4] pool p[2] = linear(3) "
        "repeat round[t] in 0..2 { x = x -> p -> mean } output x }"
    )
