"""Mistakes in definitions of routers."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic

R = "router r() for p { input x: float[tokens, 4] "
M = " } model m() { input x: float[5, 4] pool p[2] = linear(3) router g = r y = x -> p by g output y }"


class RecordOutsideRouter(Diagnostic):
    """Only a router has a decision to show."""

    code = "MG244"
    message = "a record stands outside of a router's body"
    help = "in a model or block every value can be reached by its name; output it, or use it in a loss"
    example = "model m() { input x: float[4] record gates = x output x }"


class UnknownRole(Diagnostic):
    """What a record means is one of few words, which traces, losses and exports look for."""

    code = "MG245"
    message = 'no record means "{name}"'
    help = "{suggestion}"
    example = R + "g = x -> linear(p) -> softmax record w: weights = g y = x -> p by g output y" + M


class RecordShape(Diagnostic):
    """Records of a known meaning are numbers for each sender and module, so that they can be read for any router."""

    code = "MG246"
    message = "{role} are {wanted}, and this is {found}"
    help = "lay the axes so: -> transpose(…); or give it a name of its own, record NAME: other = …"
    example = R + "g = x -> linear(p) -> softmax record gates = x y = x -> p by g output y" + M


class RouterOutputs(Diagnostic):
    """What a router gives is the value of the route."""

    code = "MG247"
    message = 'router "{name}" has {count} outputs, and needs one'
    help = "output y, what the modules made of the value; record what else is to be seen"
    example = R + "g = x -> linear(p) -> softmax y = x -> p by g" + M


class RouterPools(Diagnostic):
    """A router is for as many pools as it is defined for."""

    code = "MG248"
    message = 'router "{name}" is for {wanted}, and {given} pools are given'
    help = "the first is what is sent to, others are operands: x -> p by r(q)"
    example = (
        "router r() for p, q { input x: float[tokens, 4] g = x -> linear(p) -> softmax y = x -> p by g output y" + M
    )


class DecidesOtherwise(Diagnostic):
    """All uses of one router decide alike: they record the same, choose as many, and give values of one kind."""

    code = "MG249"
    message = 'router "{name}" decides otherwise here than where it was used before'
    help = "declare another router for this use"
