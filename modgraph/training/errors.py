"""Messages about training (MG5xx, MG6xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NothingToLearn(Diagnostic, code="MG512"):
    """Gradient descent needs a declared loss and weights that it may move."""

    message = "there is nothing to train: {reason}"
    help = "add a line such as: loss cross_entropy(logits, label)"


class NoDevice(Diagnostic, code="MG513"):
    """A recipe names a device that this machine does not have."""

    message = 'there is no device "{device}": {reason}'
    help = "take another: -s train.device=cpu, or auto for an accelerator if there is one"


class UnknownMetric(Diagnostic, code="MG514"):
    """A recipe monitors a metric that this training does not measure."""

    message = '{key} watches "{metric}", which is not measured'
    help = "{suggestion}"


class CannotMeasure(Diagnostic, code="MG724"):
    """A recipe requests a metric that a target does not have: `f1` and `auc` need classes, `mae` and `r2` numbers.
    Accuracy, perplexity and mse are measured wherever they are defined."""

    message = "train.metrics.{target}: {reason}"
    help = "{suggestion}"


class UnlikeMetrics(Diagnostic, code="MG725"):
    """The mean of several metrics is meaningful only if all of them improve upwards, or all downwards."""

    message = '{key} takes the mean of "{larger}", of which larger is better, and "{smaller}", of which smaller is'
    help = "name metrics of one direction"


class UnknownTarget(Diagnostic, code="MG515"):
    """A recipe configures the labels of a target that no suitable loss of the spec compares with."""

    message = 'train.labels names "{target}", which no {by} of the spec compares with'
    help = "{suggestion}"


class UnknownLoss(Diagnostic, code="MG553"):
    """A recipe weighs a loss that the spec does not have. In its name `*` stands for any letters."""

    message = 'train.losses names "{pattern}", which is no loss of the spec'
    help = "{suggestion}"


class CannotBeMissing(Diagnostic, code="MG554"):
    """`cross_entropy`, `gaussian` and `mse` skip missing labels. Any other reader of the target would take a class
    below 0, or NaN, for a label."""

    message = 'train.labels.{target}.missing: "{reader}" reads "{target}" and cannot leave out what is missing'
    help = "compare it with its prediction only by cross_entropy, gaussian or mse"


class NoSuchState(Diagnostic, code="MG550"):
    """A recipe moves a state along a schedule that the spec does not have. In its name `*` stands for any letters."""

    message = 'train.states names "{pattern}", which is no state of the spec'
    help = "{suggestion}"


class StateWithRule(Diagnostic, code="MG551"):
    """A recipe moves a state along a schedule that a rule of the spec, `next …`, moves already."""

    message = 'train.states."{pattern}" moves the state "{state}", which has a rule: next {state} = …'
    help = "leave one of them out: the key of the recipe, or the rule of the spec"


class StateIsNoNumber(Diagnostic, code="MG552"):
    """A recipe moves an array along a schedule. A schedule scales a single number."""

    message = 'train.states."{pattern}" moves the state "{state}", which is {type} and no number'
    help = "declare a number, state scale: float = constant(1), and multiply the array by it"


class NotAnImage(Diagnostic, code="MG518"):
    """A recipe augments an input that the spec does not have, or that holds no images, float[C, H, W]."""

    message = 'train.augment: "{name}" is no input of images'
    help = "{suggestion}"


class Diverged(Diagnostic, code="MG604"):
    """The loss, a gradient or a weight is infinite or NaN, so any later result would be meaningless.

    No checkpoint holds such numbers: the last one is from before, and `--resume` continues there, to the same end.
    """

    message = "{what} at step {step}"
    help = "lower the learning rate (-s train.optimizer.lr=…), clip gradients (-s train.clip=1.0) or check the data"


class DoesNotCarryOver(Diagnostic, code="MG631"):
    """A training continues with another graph, in which weights of the same names have other shapes."""

    message = "the other graph has these weights in other shapes: {weights}"
    help = "give values and modules whose weights are to start afresh other names"


class NotForEval(Diagnostic, code="MG605"):
    """A run is evaluated as it was trained. Only its data can be overridden."""

    message = '"{name}" cannot be set for an evaluation'
    help = "only keys of data can: -s data.KEY=VALUE"


class OfAnotherRun(Diagnostic, code="MG607"):
    """`eval RUN --bundle FILE` measures a bundle of that run: its manifest names the graph and the weights.

    A run that was trained further since the export, or whose best epoch has changed, has other weights than its old
    bundle.
    """

    message = 'the bundle "{bundle}" holds {what} than the run "{run}"'
    help = "export it again from this run: modgraph export {run} -o {bundle}"


class ProcessLost(Diagnostic, code="MG622"):
    """The processes of a training wait for one another at every step. If one ends, all do. It prints the reason, unless
    the system killed it, for example for lack of memory."""

    message = "another process of this training has ended, or cannot be reached: {reason}"
    help = "read its message, then continue from the last checkpoint: modgraph train --resume {path}"


class TooLargeForMemory(Diagnostic, code="MG612"):
    """A training requested more memory than there is.

    A step takes memory for its batch, with `by` for a batch of each group; an E-step of em for `samples` + 1 times its
    own batch, and its table for every decision of every training example.
    """

    message = "the training does not fit into memory: {reason}"
    help = "take fewer examples at once (-s train.batch={batch}), a smaller model, or with em fewer samples"


class NoGradient(Diagnostic, code="MG540"):
    """A router that samples its choices passes no gradient, so gradient descent would never train it."""

    message = 'router "{router}" draws its choices: gradients do not reach it'
    help = "train with the algorithm em or reinforce (train.algorithm: em)"


class NothingSampled(Diagnostic, code="MG541"):
    """The algorithms em and reinforce train routers that sample their choices, such as `categorical`, or a router text
    that records the choice of a `draw`, which no gradient passes."""

    message = "the algorithm {algorithm} teaches routers that draw their choices, and the spec has none"
    help = "use the router categorical, or one that records what it draws, or train.algorithm: backprop"


class NoDistribution(Diagnostic, code="MG260"):
    """The algorithms em and reinforce weigh a decision by its probability, from a router's records: `logits` or
    `log_probabilities`, with a number for each slot and module where the router fills slots."""

    message = 'router "{router}" draws its choices, and does not record what it draws from'
    help = "record it in the router's body: record scores: log_probabilities = scores -> log_softmax"


class NoLikelihood(Diagnostic, code="MG542"):
    """The algorithms em and reinforce judge decisions by the likelihood of the targets. A loss is a likelihood if it is
    `cross_entropy` or `gaussian` and nothing else, without a factor."""

    message = "the algorithm {algorithm} judges decisions by a likelihood, and no loss of the spec is one"
    help = "declare one: loss cross_entropy(logits, label), or loss gaussian(prediction, target, variance=0.1)"


class LabelsAreMissing(Diagnostic, code="MG619"):
    """The algorithms em and reinforce judge decisions by the likelihood of all targets of an example, so each needs its
    label."""

    message = (
        "the algorithm {algorithm} judges decisions by every example's labels, and those of {target} may be missing"
    )
    help = "train with backprop, or leave out train.labels.{target}.missing and the examples without a label"


class NeedsOneProcess(Diagnostic, code="MG543"):
    """The algorithm em keeps one table of assignments. Several processes would each have their own."""

    message = "the algorithm {algorithm} runs in one process"
    help = "start it without torchrun"


class CannotDivide(Diagnostic, code="MG880"):
    """A weight that grows, or is partly frozen, is stored in parts, which fsdp does not divide among processes."""

    message = "train.strategy: fsdp cannot train a model that has grown: {weights} in parts"
    help = "train it with ddp: -s train.strategy=ddp"


class CannotCompile(Diagnostic, code="MG875"):
    """`train.compile` compiles the kernels of a step, which needs a C++ compiler and Python's headers on a processor,
    and Triton on an accelerator."""

    message = "train.compile: {reason}"
    help = "install it (g++ and python3-dev of a distribution, or set CXX), or train without: -s train.compile=false"


class NoTasks(Diagnostic, code="MG720"):
    """A continual training takes the groups of one grouping of its data as tasks."""

    message = 'train.algorithm.by: the data has no grouping "{name}" that could be the tasks'
    help = "{suggestion}"


class NoSuchLoss(Diagnostic, code="MG721"):
    """A phase of a continual training names losses, with * for any letters, and the spec has none of that name."""

    message = 'train.algorithm.phases.{phase}.losses: no loss of the spec is called "{pattern}"'
    help = "{suggestion}"


class NoSuchWeight(Diagnostic, code="MG722"):
    """`learns` names weights that continue to learn in every task, with * for any letters, and the spec has none."""

    message = 'train.algorithm.learns: no weight of the spec is called "{pattern}"'
    help = "{suggestion}"


class NoLossLeft(Diagnostic, code="MG723"):
    """The first task of a continual training has nothing to learn in any of its phases."""

    message = "no phase has anything to learn in the first task: the losses are computed from frozen weights only"
    help = "leave what the first task is to train out of frozen {{ … }}"


class OtherParameter(Diagnostic, code="MG555"):
    """A program is trained with the parameters that it was read with, and its recipe asks for others."""

    message = "the recipe sets {name}={value}, and the program was read with {name}={own}"
    help = "read it so, modgraph.load(PATH, {name}={value}), or train the path: modgraph.train(PATH)"
