"""Messages about training (MG5xx, MG6xx)."""

from __future__ import annotations

from modgraph.diagnostics import Caution, Diagnostic


class NothingToLearn(Diagnostic, code="MG512"):
    """Gradient descent needs a declared loss and weights that are not frozen."""

    message = "nothing to train: {reason}"
    help = "add a loss, for example: loss cross_entropy(logits, label)"


class NoDevice(Diagnostic, code="MG513"):
    """A recipe names a device that this machine does not have."""

    message = 'unknown device "{device}": {reason}'
    help = "choose another, -s train.device=cpu, or auto for an accelerator if there is one"


class WillNeedFile(Caution, code="MG528"):
    """A recipe names a file or folder that does not exist: `check` finds that beforehand. It is a caution, since the
    data may stand on another machine that trains."""

    message = 'training by this recipe needs "{path}", which does not exist'
    help = "name one that does, relative to the current folder: -s {key}=PATH"


class UnknownMetric(Diagnostic, code="MG514"):
    """A recipe monitors a metric that this training does not measure."""

    message = 'unknown metric "{metric}" in {key}'
    help = "{suggestion}"


class CannotMeasure(Diagnostic, code="MG724"):
    """A recipe requests a metric that does not suit the target: `f1` and `auc` need classes, `mae` and `r2` numbers.
    Accuracy, perplexity and mse are measured wherever they are defined, mae where a loss is `l1` or `huber`."""

    message = "train.metrics.{target}: {reason}"
    help = "{suggestion}"


class UnlikeMetrics(Diagnostic, code="MG725"):
    """A mean of metrics makes sense only if all improve upwards, or all downwards."""

    message = '{key} cannot average "{larger}" (larger is better) with "{smaller}" (smaller is better)'
    help = "name metrics of one direction"


class UnknownTarget(Diagnostic, code="MG515"):
    """A recipe configures the labels of a target that no suitable loss compares with."""

    message = 'unknown target "{target}" in train.labels: no {by} of the spec compares with it'
    help = "{suggestion}"


class UnknownLoss(Diagnostic, code="MG553"):
    """A recipe weights a loss that the spec does not have. In its name `*` matches any letters."""

    message = 'unknown loss "{pattern}" in train.losses'
    help = "{suggestion}"


class CannotBeMissing(Diagnostic, code="MG554"):
    """`cross_entropy`, `binary_cross_entropy`, `gaussian`, `mse`, `l1` and `huber` skip missing labels. Any other
    reader of the target would take a class below 0, or NaN, for a label."""

    message = 'train.labels.{target}.missing: "{reader}" reads "{target}" and cannot skip missing labels'
    help = "read the target only by cross_entropy, binary_cross_entropy, l1, huber, gaussian or mse"


class NoSuchState(Diagnostic, code="MG550"):
    """A recipe gives a schedule to a state that the spec does not have. In its name `*` matches any letters."""

    message = 'unknown state "{pattern}" in train.states'
    help = "{suggestion}"


class StateWithRule(Diagnostic, code="MG551"):
    """A recipe gives a schedule to a state that `next …` of the spec updates."""

    message = 'train.states."{pattern}" moves the state "{state}", but the spec does too: next {state} = …'
    help = "remove one of them: the key of the recipe, or the rule of the spec"


class StateIsNoNumber(Diagnostic, code="MG552"):
    """A recipe gives a schedule to an array. A schedule scales a single number."""

    message = 'train.states."{pattern}": state "{state}" must be a number, not {type}'
    help = "declare a number, state scale: float = constant(1), and multiply the array by it"


class NotAnImage(Diagnostic, code="MG518"):
    """A recipe augments an input that the spec does not have, or that holds no images, float[C, H, W]."""

    message = 'train.augment: "{name}" is no input of images'
    help = "{suggestion}"


class Diverged(Diagnostic, code="MG604"):
    """The loss, a gradient or a weight is infinite or NaN, so any later result would be meaningless.

    No checkpoint contains such numbers: the last one is from before, and `--resume` continues there, to the same end.
    """

    message = "{what} at step {step}"
    help = "lower the learning rate (-s train.optimizer.lr=…), clip gradients (-s train.clip=1.0) or check the data"


class DoesNotCarryOver(Diagnostic, code="MG631"):
    """A training continues with another graph, in which weights of the same names have other shapes."""

    message = "these weights have other shapes in the new graph: {weights}"
    help = "rename the values and modules whose weights should start afresh"


class NotForEval(Diagnostic, code="MG605"):
    """An evaluation uses the recipe of the run. Only its data can be overridden."""

    message = 'unknown key "{name}" for an evaluation'
    help = "override only keys of data: -s data.KEY=VALUE"


class OfAnotherRun(Diagnostic, code="MG607"):
    """`eval RUN --bundle FILE` measures a bundle of that run: its manifest names the graph and the weights.

    After more training, or with another best epoch, a run has other weights than its old bundle.
    """

    message = 'bundle "{bundle}" has {what} than run "{run}"'
    help = "export it again: modgraph export {run} -o {bundle}"


class ProcessLost(Diagnostic, code="MG622"):
    """The processes of a training wait for one another at every step. If one ends, all do. It prints the reason, unless
    the system killed it, for example for lack of memory."""

    message = "another process of this training has ended or cannot be reached: {reason}"
    help = "read its message, then continue from the last checkpoint: modgraph train --resume {path}"


class TooLargeForMemory(Diagnostic, code="MG612"):
    """A training needs more memory than there is.

    A step needs memory for its batch, with `by` for a batch of each group; an E-step of em for `samples` + 1 times its
    own batch, and for its table with every decision of every training example.
    """

    message = "the training does not fit into memory: {reason}"
    help = "lower the batch (-s train.batch={batch}), make the model smaller, or with em lower samples"


class NoGradient(Diagnostic, code="MG540"):
    """A sampled choice passes no gradient, so gradient descent would never train the router."""

    message = 'router "{router}" samples its choices, so no gradient reaches it'
    help = "train with the algorithm em or reinforce: train.algorithm: em"


class NothingSampled(Diagnostic, code="MG541"):
    """The algorithms em and reinforce train routers that sample their choices, such as `categorical`, or a router text
    that records the choice of a `draw`, which no gradient passes."""

    message = "{algorithm} trains routers that sample, and the spec has none"
    help = "use the router categorical, or one that records its draw, or train.algorithm: backprop"


class NoDistribution(Diagnostic, code="MG260"):
    """The algorithms em and reinforce weight a decision by its probability, from a router's records: `logits` or
    `log_probabilities`, with a number for each slot and module where the router fills slots."""

    message = 'router "{router}" samples its choices, but does not record their distribution'
    help = "record it in the router: record scores: log_probabilities = scores -> log_softmax"


class NoLikelihood(Diagnostic, code="MG542"):
    """The algorithms em and reinforce score decisions by the likelihood of the targets. A loss is a likelihood if it is
    only `cross_entropy` or `gaussian`, without a factor."""

    message = "{algorithm} needs a likelihood, and no loss of the spec is one"
    help = "declare one: loss cross_entropy(logits, label), or loss gaussian(prediction, target, variance=0.1)"


class LabelsAreMissing(Diagnostic, code="MG619"):
    """The algorithms em and reinforce score decisions by the likelihood of all targets, so each example needs its
    labels."""

    message = "{algorithm} needs every label, and labels of {target} may be missing"
    help = "train with backprop, or remove train.labels.{target}.missing and the examples without a label"


class NeedsOneProcess(Diagnostic, code="MG543"):
    """The algorithm em keeps one table of assignments. Several processes would each have their own."""

    message = "{algorithm} runs in one process"
    help = "start it without torchrun"


class CannotDivide(Diagnostic, code="MG880"):
    """A weight that grows, or is partly frozen, is stored in parts, which fsdp does not divide among processes."""

    message = "train.strategy: fsdp cannot train a model that has grown: {weights} in parts"
    help = "train it with ddp: -s train.strategy=ddp"


class CannotDividePools(Diagnostic, code="MG881"):
    """With `train.experts: N`, each N processes divide the modules of every pool among them: torchrun starts N, or a
    multiple of N, of which all have a part of each batch. A pool of fewer modules is not divided."""

    message = "train.experts: {experts} {problem}"
    help = "{way_out}"


class CannotCompile(Diagnostic, code="MG875"):
    """`train.compile` compiles the kernels of a step. It needs a C++ compiler and Python's headers for a processor, and
    Triton for an accelerator."""

    message = "train.compile: {reason}"
    help = "install it (g++ and python3-dev of a distribution, or set CXX), or train without: -s train.compile=false"


class NoTasks(Diagnostic, code="MG720"):
    """A continual training takes the groups of one grouping of its data as tasks."""

    message = 'unknown grouping "{name}" in train.algorithm.by'
    help = "{suggestion}"


class NoSuchLoss(Diagnostic, code="MG721"):
    """A phase of a continual training names a loss that the spec does not have. In its name `*` matches any letters."""

    message = 'unknown loss "{pattern}" in train.algorithm.phases.{phase}.losses'
    help = "{suggestion}"


class NoSuchWeight(Diagnostic, code="MG722"):
    """`learns` names weights that learn in every task, and the spec has none of that name. In its name `*` matches any
    letters."""

    message = 'unknown weight "{pattern}" in train.algorithm.learns'
    help = "{suggestion}"


class NoLossLeft(Diagnostic, code="MG723"):
    """No phase of the first task of a continual training has a weight to train."""

    message = "the first task trains nothing: its losses depend on frozen weights only"
    help = "move the weights of the first task out of frozen {{ … }}"


class OtherParameter(Diagnostic, code="MG555"):
    """A program keeps the parameters that it was loaded with, and its recipe sets others."""

    message = "{origin} {name}={value}, but the program has {name}={own}"
    help = "load it with this value, modgraph.load(PATH, {name}={value}), or train the path: modgraph.train(PATH)"


class BadConfig(Diagnostic, code="MG538"):
    """`start.weights` names a folder and its map has a section `config`, or `-s @MAP=FOLDER` is given: then the folder
    contains a config.json, which says how the published model is built."""

    message = 'cannot read parameters from "{path}": {reason}'
    help = "give the folder of a published checkpoint with its config.json, or remove config from the map"


class NotInConfig(Diagnostic, code="MG539"):
    """The section `config` of a map names the key of config.json that gives a parameter of the spec: a number, a text,
    a truth value or a list of them."""

    message = '"{path}" has no value at {key} for the parameter {parameter}'
    help = "name another key, or several and a value for files without them: {parameter}: [{key}, VALUE]"


class ConfigDiffers(Diagnostic, code="MG545"):
    """The section `requires` of a map lists what config.json must say where it has the key. Other activations, windows
    or tied embeddings would give other results without a word."""

    message = '"{path}" says {key}: {found}, but the map needs {wanted}'
    help = "take a spec and a map of this kind of model"
