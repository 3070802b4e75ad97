"""Messages about growth in training: `grow pool by router when … where …`."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic

SENT = (
    "model m() { input x: float[5, 4] pool p[2] = linear(4) router r = agreement(1) "
    "y = x -> p by r -> mean c = y -> mean(axis=-1) -> batch_mean output y "
)
LOSS = ' loss importance(r, over="example") }'


class GrowthCondition(Diagnostic):
    """Whether a pool grows is decided for a whole batch by one number, which says no where it is zero."""

    code = "MG251"
    message = "growth is decided by one number for the whole batch, and this is {found}"
    help = "{way_out}"
    example = f"{SENT} grow p by r when y -> mean(axis=-1){LOSS}"


class GrowsByAnother(Diagnostic):
    """A pool grows by a router that sends through it, which then gets an output more."""

    code = "MG252"
    message = 'router "{router}" sends nothing through pool "{pool}" before it grows'
    help = "let it grow by the router that it is used by, behind: x -> {pool} by {router}"
    example = f"{SENT} router s = agreement(1) grow p by s when c > 0{LOSS}"


class GrowsTwice(Diagnostic):
    """Modules along one axis grow together, so one condition decides for all pools that share it."""

    code = "MG256"
    message = 'it is said twice when the modules of "{pool}" grow'
    help = "make one condition of both, for example: maximum(a > 2, b > 2)"
    example = f"{SENT} grow p by r when c > 0 grow p by r when c > 1{LOSS}"
