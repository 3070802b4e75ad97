"""Messages about pools, routers and scans."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic

HEAD = "model m() { input x: float[5, 4] "
R = "router r() for p { input x: float[tokens, 4] "
M = " } model m() { input x: float[5, 4] pool p[2] = linear(3) router g = r y = x -> p by g output y }"


class RecordOutsideRouter(Diagnostic, code="MG244"):
    """Only routers have records. In a model or block every value has a name."""

    message = "a record must stand in a router"
    help = "in a model or block, output the value, or use it in a loss"
    example = "model m() { input x: float[4] record gates = x output x }"


class UnknownRole(Diagnostic, code="MG245"):
    """A record has one of a few roles, by which traces, losses and exports find it."""

    message = 'unknown role "{name}" of a record'
    help = "{suggestion}"
    example = R + "g = x -> linear(p) -> softmax record w: weights = g y = x -> p by g output y" + M


class RecordShape(Diagnostic, code="MG246"):
    """A record with a role has a number for each token and module, so it reads the same for every router."""

    message = "{role} must be {wanted}, not {found}"
    help = "permute the axes, -> transpose(…), or choose the role other: record NAME: other = …"
    example = R + "g = x -> linear(p) -> softmax record gates = x y = x -> p by g output y" + M


class DecidesByVectors(RecordShape):
    """A router of the vocabulary needs one number for each token and module, which it computes from vectors."""

    message = 'router "{router}" decides by vectors, but the modules of "{pool}" {does}'
    help = "{way_out}"
    way_out = ""


class RouterOutputs(Diagnostic, code="MG247"):
    """The output of a router is the value of the route."""

    message = 'router "{name}" must have one output, not {count}'
    help = "output the value of the route, output y, and record the rest"
    example = R + "g = x -> linear(p) -> softmax y = x -> p by g" + M


class RouterPools(Diagnostic, code="MG248"):
    """A router takes as many pools as its definition names."""

    message = 'router "{name}" routes to {wanted}, not to {given} pools'
    help = "put x -> the first pool, and the others in parentheses: x -> p by r(q)"
    example = (
        "router r() for p, q { input x: float[tokens, 4] g = x -> linear(p) -> softmax y = x -> p by g output y" + M
    )


class LargePool(Diagnostic, code="MG321"):
    """A pool of more than 65,536 modules is stored as one tensor for each weight, with a row for each module. So its
    modules must be equal but for the values of their weights, and each op must run on such tensors."""

    message = 'pool "{pool}" of {size:,} modules cannot be stored: {reason}'
    help = "use at most 65,536 modules, or change that"
    example = "model m() { input x: float[4] pool p[70000] = linear(4) -> dropout(0.5) output y = x -> p[0] }"


class DecidesOtherwise(Diagnostic, code="MG249"):
    """All uses of a router must record the same, choose equally many modules, and give values of one kind."""

    message = 'router "{name}" decides differently here than at an earlier use'
    help = "declare another router for this use"


class SelectsTooMany(Diagnostic, code="MG203"):
    """A router cannot send a token to more modules than the pool has."""

    message = 'router "{router}" chooses k={k} modules, but "{pool}" has {size}'
    help = 'lower k, or raise the size of "{pool}"'
    example = HEAD + "pool p[2] = linear(4) router r = noisy_top_k(k=3) y = x -> p by r output y }"


class PoolWithoutSize(Diagnostic, code="MG227"):
    """A homogeneous pool states how many modules it has; a list of different modules has its length."""

    message = 'pool "{name}" has no size'
    help = "write pool {name}[4] = …, or list different modules: pool {name} = [ …, … ]"
    example = "model m() { input x: float[4] pool p = linear(3) output x }"


class CannotGrow(Diagnostic, code="MG228"):
    """`grow pool[2]` adds modules to a homogeneous pool before its first use."""

    message = 'pool "{pool}" cannot grow here: {reason}'
    example = "model m() { input x: float[4] pool p[2] = linear(3) y = x -> p -> mean grow p[1] output y }"


class PoolUsedOtherwise(Diagnostic, code="MG320"):
    """A pool has the same modules at each use, and in each round of a `repeat`. Its first use decides what they
    take."""

    message = 'pool "{pool}" takes {takes}, but "{within}" sends it {found}'
    help = "send {takes} at each use, also in a loop, or declare a pool for each use"
    example = HEAD + "pool p[2] = linear(3) repeat round[t] in 0..2 { x = x -> p -> mean } output x }"


class YieldOutsideScan(Diagnostic, code="MG230"):
    """`yield` gives a value of each step of a scan. It belongs in the scan's own body, not in a block that the scan
    uses."""

    message = "a yield must stand in the body of a scan"
    help = "give the value of a model or block with: output NAME"
    example = "model m() { input x: float[5, 4] yield x output x }"


class NoYield(Diagnostic, code="MG231"):
    """A scan gives the values that its steps yield, joined along the first axis. Nothing else of it is visible
    outside."""

    message = "this scan yields nothing"
    help = "add to its body: yield NAME"
    example = "model m() { input x: float[5, 4] scan x as v with h: float[4] { h = h + v } as y output x }"


class YieldsAndNames(Diagnostic, code="MG232"):
    """`as` names the values that the steps yield, in the same order."""

    message = 'each step yields {yielded}, but {names} "as"'
    help = "write one name for each value"
    example = "model m() { input x: float[5, 4] scan x as v { yield v } as y, z output y }"


class NotInScan(Diagnostic, code="MG233"):
    """The body of a scan is one step, which runs many times. A declaration that a model has once belongs outside."""

    message = "{what} cannot stand inside a scan"
    example = "model m() { input x: float[5, 4] scan x as v { yield v loss v -> mean(axis=-1) } as y output y }"


class NotAState(Diagnostic, code="MG234"):
    """A scan reads outer values, which stay the same at every step. A value that changes from step to step is a state,
    declared with its type."""

    message = '"{name}" is no state of this scan: binding it here would not change it outside'
    help = "carry it from step to step, … with {name}: float[…] = {name} {{ … }}, or choose another name"
    example = "model m() { input x: float[5, 4] t = x -> mean scan x as v { t = t + v yield t } as y output y }"


class BadCondition(Diagnostic, code="MG235"):
    """A loop ends where its condition is not zero: for a whole example, or along axes of tokens, which the condition
    has. There all states and yields keep their values, so each begins with these axes. A condition that nothing in the
    loop changes would end it after one round or never."""

    message = "the condition of until {problem}"
    example = """model m() { input x: float[5, 4]
      scan 0..8 as n with h: float[5, 4] = x, t: float { h = h -> linear(4) t = t + 1 yield h }
      until (h -> mean(axis=-1)) > 1 as y output y }"""
    way_out = ""


class NoTimeAxis(Diagnostic, code="MG310"):
    """A scan runs over the first axis of a value, one step for each place, or over a range of rounds."""

    message = "a scan needs a value with an axis, not {found}"
    example = "model m() { input x: float scan x as v { yield v } as y output y }"
    way_out = "scan a value with an axis, such as float[time, 8]"


class StateType(Diagnostic, code="MG311"):
    """A state of a scan has one type, float, at the start and after each step. An axis of any length is as long as that
    of a start or an input."""

    message = 'state "{name}" is {declared}, but {found}'
    example = HEAD + "scan x as v with h: float[3] { h = (h, v) -> concat yield h } as y output y }"
    way_out = "make both types equal"
