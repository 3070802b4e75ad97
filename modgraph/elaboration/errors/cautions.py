"""Messages about what is odd, though it is no mistake."""

from __future__ import annotations

from modgraph.diagnostics import Caution

HEAD = "model m() { input x: float[5, 4] "


class Unused(Caution, code="MG401"):
    """Something is declared and never used, so it is left out of the graph."""

    message = '{what} "{name}" is never used: it is left out'
    help = "use it or delete its line"
    example = "model m() { input x: float[4] pool p[2] = linear(3) output x }"


class OutsideProject(Caution, code="MG403"):
    """An import reads a file outside the folder of the spec. It is reported, so that no spec reads files unnoticed."""

    message = '"{path}" lies outside the folder of the spec'
    help = "copy it into that folder, or go on if this is meant"


class Dead(Caution, code="MG404"):
    """Weights are made that no output or loss depends on."""

    message = 'the weights of "{name}" reach no output and no loss'
    help = "use the value, or delete the statement"
    example = "model m() { input x: float[4] y = x -> linear(2) output x }"


class SingleModule(Caution, code="MG405"):
    """A router chooses among one module, so there is nothing to choose.

    A pool that says so outright, `pool p[1]`, is meant: a router may choose what its only module is sent.
    """

    message = 'router "{router}" routes to a pool of one module'
    help = "raise the pool's size"
    example = "model m(n=1) { input x: float[4] pool p[n] = linear(4) router r = agreement y = x -> p by r output y }"


class SelectsAll(Caution, code="MG408"):
    """A router that chooses modules is set to choose all of them: each token is computed by every module."""

    message = 'router "{router}" selects all {size} modules of "{pool}"'
    help = "lower k, or take a router that mixes all modules"
    example = HEAD + "pool p[2] = linear(4) router r = noisy_top_k(k=2) y = x -> p by r output y }"


class NoBalance(Caution, code="MG407"):
    """A router that may come to use few of its modules has no loss that keeps their use in balance, in a model that
    is trained. Any loss that depends on what the router records counts: `importance(r)`, `load(r)`, or one written by
    hand from `r.gates`."""

    message = 'nothing keeps router "{router}"{others} from using few of its modules'
    example = HEAD + "pool p[2] = linear(4) router r = agreement(1) y = x -> p by r -> mean output y loss mse(y, y) }"


class NamesWouldShift(Caution, code="MG406"):
    """A name is bound twice in one scope by statements with weights of their own: the second's are numbered, and a
    statement inserted between would rename them, so that a checkpoint no longer fits."""

    message = 'weights stand under "{name}", a number that an inserted statement would shift'
    help = 'name the op: name="…"'
    example = "model m() { input x: float[4] x = x -> linear(4) x = x -> linear(4) output x }"


class StateStays(Caution, code="MG410"):
    """The body of a scan never binds a state anew, so that it keeps the value it starts with."""

    message = 'nothing updates state "{name}": it keeps its initial value'
    help = "bind it in the body, {name} = …, or read a value from outside instead"
    example = "model m() { input x: float[5, 4] scan x as v with h: float[4] { yield v + h } as y output y }"


class EmptyFamily(Caution, code="MG402"):
    """A statistic runs over a family without members; it counts as zero."""

    message = 'no router called "{name}" was declared: {statistic} of none is 0'
    way_out = "check the condition under which it is declared"


class ChoiceLost(Caution, code="MG411"):
    """The spec chooses modules, and an op between the choice and their weights gives numbers other than zero where its
    operand is zero. So every module runs on every token, whatever was chosen. Products, sums of choices, `where` with
    zero, `masked_softmax`, functions that are zero at zero, and ops that move, join, cut or reduce axes keep zeros."""

    message = 'a choice of modules ends at "{op}", which does not keep its zeros: every module runs'
    example = HEAD + "pool p[3] = linear(4) s = x -> linear(p) y = x -> p by (s * (s -> top_k) -> softmax) output y }"


class NoLogits(Caution, code="MG412"):
    """An op that applies a softmax to its operand gets probabilities. A softmax of probabilities is nearly the same for
    all classes, so the model learns slowly and never becomes certain. Logits are unbounded numbers, such as the result
    of `linear`; the result of `log_softmax` is logits too."""

    message = '"{op}" takes logits, but gets numbers between zero and one from "{made}"'
    example = (
        "model m() { input x: float[4] target label: class[3] p = x -> linear(3) -> softmax output p "
        "loss cross_entropy(p, label) }"
    )


class NotLearned(Caution, code="MG413"):
    """Weights that are not frozen keep their initial values, since no gradient of a loss reaches them: none passes a
    choice or a comparison, and a softmax over a single chosen module is one whatever its score. An algorithm of the
    recipe (`em`, `reinforce`) trains a router that draws and records the logits of the draw."""

    message = "no gradient of a loss reaches {what}{why}"
    example = (
        "model m() { input x: float[4] target y: float[3] z = x -> linear(3) loss mse(z, y) output z "
        "output aside = x -> linear(2) }"
    )


class NotTaught(Caution, code="MG414"):
    """The task depends on weights that its gradient does not reach; only other losses train them, such as a loss that
    balances the use of modules. So a router does not learn which module suits a token. The losses of the task are those
    that depend on a target or compare two values."""

    message = "no gradient of the task reaches {what}, only that of other losses{why}"
    example = (
        "model m() { input x: float[5, 4] target y: float[5, 4] pool p[3] = linear(4) router r = noisy_top_k(1) "
        "z = x -> p by r output z loss mse(z, y) loss 0.01 * load(r) }"
    )
