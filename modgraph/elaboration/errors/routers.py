"""Messages about pools, routers and scans."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic

HEAD = "model m() { input x: float[5, 4] "
R = "router r() for p { input x: float[tokens, 4] "
M = " } model m() { input x: float[5, 4] pool p[2] = linear(3) router g = r y = x -> p by g output y }"


class RecordOutsideRouter(Diagnostic, code="MG244"):
    """Only a router has a decision to show."""

    message = "a record stands outside of a router's body"
    help = "in a model or block every value can be reached by its name; output it, or use it in a loss"
    example = "model m() { input x: float[4] record gates = x output x }"


class UnknownRole(Diagnostic, code="MG245"):
    """What a record means is one of few words, which traces, losses and exports look for."""

    message = 'a record has no role "{name}"'
    help = "{suggestion}"
    example = R + "g = x -> linear(p) -> softmax record w: weights = g y = x -> p by g output y" + M


class RecordShape(Diagnostic, code="MG246"):
    """Records of a known meaning are numbers for each sender and module, so that they can be read for any router."""

    message = "{role} are {wanted}, and this is {found}"
    help = "lay the axes so: -> transpose(…); or give it a name of its own, record NAME: other = …"
    example = R + "g = x -> linear(p) -> softmax record gates = x y = x -> p by g output y" + M


class RouterOutputs(Diagnostic, code="MG247"):
    """What a router gives is the value of the route."""

    message = 'router "{name}" has {count} outputs, and needs one'
    help = "output y, what the modules made of the value; record what else is to be seen"
    example = R + "g = x -> linear(p) -> softmax y = x -> p by g" + M


class RouterPools(Diagnostic, code="MG248"):
    """A router is for as many pools as it is defined for."""

    message = 'router "{name}" is for {wanted}, and {given} pools are given'
    help = "x goes to the first pool, the others are operands: x -> p by r(q)"
    example = (
        "router r() for p, q { input x: float[tokens, 4] g = x -> linear(p) -> softmax y = x -> p by g output y" + M
    )


class DecidesOtherwise(Diagnostic, code="MG249"):
    """All uses of one router decide alike: they record the same, choose as many, and give values of one kind."""

    message = 'router "{name}" decides otherwise here than where it was used before'
    help = "declare another router for this use"


class SelectsTooMany(Diagnostic, code="MG203"):
    """A router sends each token to more modules than the pool has."""

    message = 'router "{router}" selects k={k} of a pool of {size}'
    help = 'lower k, or raise the size of "{pool}"'
    example = HEAD + "pool p[2] = linear(4) router r = noisy_top_k(k=3) y = x -> p by r output y }"


class PoolWithoutSize(Diagnostic, code="MG227"):
    """A pool of modules of one kind says how many there are; a list of unlike modules says it by its length."""

    message = 'pool "{name}" does not say how many modules it has'
    help = "write pool {name}[4] = …, or list unlike modules: pool {name} = [ …, … ]"
    example = "model m() { input x: float[4] pool p = linear(3) output x }"


class CannotGrow(Diagnostic, code="MG228"):
    """A pool of modules of one kind can grow; `grow pool[2]` adds modules to it before it is first used."""

    message = 'pool "{pool}" cannot grow here: {reason}'
    example = "model m() { input x: float[4] pool p[2] = linear(3) y = x -> p -> mean grow p[1] output y }"


class PoolUsedOtherwise(Diagnostic, code="MG320"):
    """A pool's modules are the same at each use, in each round of a `repeat` too: they take what the first use gave
    them."""

    message = 'pool "{pool}" takes {takes} since its first use, and "{within}" gives it {found}'
    help = "give it {takes} each time, its own results in a loop too, or declare a pool for each use"
    example = HEAD + "pool p[2] = linear(3) repeat round[t] in 0..2 { x = x -> p -> mean } output x }"


class YieldOutsideScan(Diagnostic, code="MG230"):
    """`yield` says what each step of a scan gives; it stands in the scan's own body, not in a block that it uses."""

    message = "this yield stands in no scan"
    help = "a model or block gives a value with: output NAME"
    example = "model m() { input x: float[5, 4] yield x output x }"


class NoYield(Diagnostic, code="MG231"):
    """A scan gives what its steps yield, joined along the first axis; nothing else of it is seen outside."""

    message = "this scan yields nothing"
    help = "add to its body: yield NAME"
    example = "model m() { input x: float[5, 4] scan x as v with h: float[4] { h = h + v } as y output x }"


class YieldsAndNames(Diagnostic, code="MG232"):
    """A scan names after `as` what its steps yield: as many names as values, in the order of its yields."""

    message = 'each step yields {yielded}, and {names} "as"'
    help = "write one name for each value that is yielded"
    example = "model m() { input x: float[5, 4] scan x as v { yield v } as y, z output y }"


class NotInScan(Diagnostic, code="MG233"):
    """The body of a scan is one step, which runs many times: what there is once for a model stands outside."""

    message = "{what} cannot stand inside a scan"
    example = "model m() { input x: float[5, 4] scan x as v { yield v loss v -> mean(axis=-1) } as y output y }"


class NotAState(Diagnostic, code="MG234"):
    """The body of a scan reads values bound outside, and they stay the same at every step. A value that changes from
    step to step is a state, declared with its type."""

    message = '"{name}" is bound outside this scan and is no state of it: binding it again would change nothing there'
    help = "carry it from step to step, … with {name}: float[…] = {name} {{ … }}, or choose another name"
    example = "model m() { input x: float[5, 4] t = x -> mean scan x as v { t = t + v yield t } as y output y }"


class NoTimeAxis(Diagnostic, code="MG310"):
    """A scan runs over the first axis of a value, one step for each place along it."""

    message = "a scan runs over the first axis of a value, and this is {found}"
    example = "model m() { input x: float scan x as v { yield v } as y output y }"
    way_out = "scan a value that has an axis, such as float[time, 8]"


class StateType(Diagnostic, code="MG311"):
    """A state of a scan has one type: float, of fixed lengths. It starts with it, and each step gives it a value of
    that type."""

    message = 'state "{name}" is {declared}, and {found}'
    example = HEAD + "scan x as v with h: float[3] { h = (h, v) -> concat yield h } as y output y }"
    way_out = "make the two equal"
