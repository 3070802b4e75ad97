"""Messages about what is odd, though it is no mistake."""

from __future__ import annotations

from modgraph.diagnostics import Caution

HEAD = "model m() { input x: float[5, 4] "


class Unused(Caution, code="MG401"):
    """Nothing uses this declaration, so the graph leaves it out."""

    message = '{what} "{name}" is never used'
    help = "use it or delete its line"
    example = "model m() { input x: float[4] pool p[2] = linear(3) output x }"


class OutsideProject(Caution, code="MG403"):
    """An import reads a file outside the folder of the spec. The caution keeps such a read from going unnoticed."""

    message = '"{path}" lies outside the folder of the spec'
    help = "copy it into that folder, or go on if you trust it"


class Dead(Caution, code="MG404"):
    """No output and no loss depends on these weights."""

    message = 'the weights of "{name}" reach no output or loss'
    help = "use the value, or delete the statement"
    example = "model m() { input x: float[4] y = x -> linear(2) output x }"


class SingleModule(Caution, code="MG405"):
    """A router has nothing to choose in a pool of one module.

    An explicit `pool p[1]` gives no caution: a router may choose the tokens of its only module.
    """

    message = 'router "{router}" routes to a pool of one module'
    help = "raise the pool's size"
    example = "model m(n=1) { input x: float[4] pool p[n] = linear(4) router r = agreement y = x -> p by r output y }"


class SelectsAll(Caution, code="MG408"):
    """A router that chooses modules chooses all of them, so every module computes every token."""

    message = 'router "{router}" chooses all {size} modules of "{pool}"'
    help = "lower k, or use a router that mixes all modules"
    example = HEAD + "pool p[2] = linear(4) router r = noisy_top_k(k=2) y = x -> p by r output y }"


class NoBalance(Caution, code="MG407"):
    """A router may come to use few of its modules, and no loss of the model balances them. Any loss that depends on the
    records of the router counts: `importance(r)`, `load(r)`, or your own of `r.gates`. So does a choice that is even by
    itself: `sinkhorn`, `balanced_assignment`."""

    message = 'no loss keeps router "{router}"{others} from using few of its modules'
    example = HEAD + "pool p[2] = linear(4) router r = agreement(1) y = x -> p by r -> mean output y loss mse(y, y) }"


class NamesWouldShift(Caution, code="MG406"):
    """Two statements with weights bind one name in a scope, so the second gets a number. A statement between them would
    rename its weights, and a checkpoint would no longer fit."""

    message = 'the weights are named "{name}", a number that an inserted statement would shift'
    help = 'name the op: name="…"'
    example = "model m() { input x: float[4] x = x -> linear(4) x = x -> linear(4) output x }"


class StateStays(Caution, code="MG410"):
    """The body of a scan never binds the state, so it keeps its initial value."""

    message = 'state "{name}" is never updated'
    help = "bind it in the body, {name} = …, or read a value from outside instead"
    example = "model m() { input x: float[5, 4] scan x as v with h: float[4] { yield v + h } as y output y }"


class EmptyFamily(Caution, code="MG402"):
    """A statistic over a family without members is zero."""

    message = 'router "{name}" is never declared, so {statistic} is 0'
    way_out = "check the condition under which it is declared"


class ChoiceLost(Caution, code="MG411"):
    """The spec chooses modules, but an op between the choice and the weights maps zero to other numbers. So every
    module runs on every token, whatever the choice. Products, sums of choices, `where` with zero, `masked_softmax`,
    functions that are zero at zero, and ops that move, join, cut or reduce axes keep zeros."""

    message = 'every module runs: "{op}" does not keep the zeros of the choice'
    example = HEAD + "pool p[3] = linear(4) s = x -> linear(p) y = x -> p by (s * (s -> top_k) -> softmax) output y }"


class LargeRoute(Caution, code="MG420"):
    """A route over a pool of more than 65,536 modules computes weights, and perhaps results, of every module for each
    token. Ids of the chosen modules and their gates cost no more than what they choose."""

    message = 'each token has a weight for each of the {size:,} modules of "{pool}"'
    help = "choose by ids: x -> {pool} by (gates * (ids -> one_hot({pool})))"
    example = HEAD + "pool p[70000] = linear(2) y = x -> p by (x -> linear(p) -> softmax) output y }"


class BatchAxis(Caution, code="MG416"):
    """A type describes one example; modgraph adds the axis of the batch. An axis called so would be one more axis of
    each example, such as a list of vectors."""

    message = '"{name}" is an axis of each example, not the batch'
    help = "leave the batch out, {corrected}, or rename the axis"
    example = "model m() { input x: float[batch, 4] output y = x -> relu }"


class NoLogits(Caution, code="MG412"):
    """An op that applies a softmax gets probabilities. A softmax of probabilities is nearly the same for all classes,
    so the model learns slowly and never becomes certain; a sigmoid of one is no better. Logits are unbounded numbers,
    such as the result of `linear`; the result of `log_softmax` is logits of a softmax too."""

    message = '"{op}" expects logits, but "{made}" gives numbers from 0 to 1'
    example = (
        "model m() { input x: float[4] target label: class[3] p = x -> linear(3) -> softmax output p "
        "loss cross_entropy(p, label) }"
    )


class NotLearned(Caution, code="MG413"):
    """Weights that are not frozen keep their initial values, since no loss has a gradient with respect to them. No
    gradient passes a choice or a comparison, and the softmax of a single chosen module is one whatever its score. An
    algorithm of the recipe (`em`, `reinforce`) trains a router that samples and records the logits of the draw."""

    message = "no gradient of a loss reaches {what}{why}"
    example = (
        "model m() { input x: float[4] target y: float[3] z = x -> linear(3) loss mse(z, y) output z "
        "output aside = x -> linear(2) }"
    )


class NotTaught(Caution, code="MG414"):
    """The gradient of the task does not reach these weights; only other losses train them, such as one that balances
    the use of modules. So a router does not learn which module suits a token. The losses of the task depend on a target
    or compare two values."""

    message = "no gradient of the task reaches {what}, only of other losses{why}"
    example = (
        "model m() { input x: float[5, 4] target y: float[5, 4] pool p[3] = linear(4) router r = noisy_top_k(1) "
        "z = x -> p by r output z loss mse(z, y) loss 0.01 * load(r) }"
    )


class CopiesTarget(Caution, code="MG417"):
    """The data say that a target is an input one place later, the next word of a text, and its prediction depends on
    later places of that input. So the model can copy the target: its perplexity is wonderful, and it has learned
    nothing of use. The message names the shortest path from the op that reads later places. `require causal(logits,
    words)` in the spec makes it a mistake, with or without a recipe."""

    message = 'the prediction of "{target}" reads later tokens of "{tokens}"{when}, and may copy it: {path}'


class EmptyDemand(Caution, code="MG418"):
    """A spec demands that a value reads no later tokens of another, and it does not depend on that at all. The first
    value is the one that reads, the second has the tokens: `require causal(logits, words)`."""

    message = '"{value}" does not depend on "{tokens}", so the demand says nothing'
    help = "write the value first, then the tokens that it reads: require causal(logits, words)"
    example = "model m() { input x: float[time, 4] y = x -> linear(3) output y require causal(x, y) }"


class ReadsPadding(Caution, code="MG419"):
    """An op of another package reads places beyond its own along an axis of any length, and takes no mask there. So the
    result for a short example depends on the padding that longer ones of its batch give it."""

    message = '"{op}" reads padding'
    help = "name the axes that it masks in its declaration, masks=…, or declare by indexing that it reads none"


class OutputOfBatch(Caution, code="MG415"):
    """An output depends on a statistic of the whole batch. Training and evaluation compute it, but a bundle treats each
    example by itself, so the model cannot be exported with this output."""

    message = 'output "{output}" cannot be exported: it depends on "{op}", a statistic of the whole batch'
    help = "compute it per example, or export the others: modgraph export RUN -o model.onnx --only NAME"
    example = "model m() { input x: float[5, 4] y = x -> linear(3) output y output mean = y -> batch_mean }"
