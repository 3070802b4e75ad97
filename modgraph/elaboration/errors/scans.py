"""Messages about scans."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic

HEAD = "model m() { input x: float[5, 4] "


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
