"""Messages about recipes and data (MG5xx), runs and checkpoints (MG6xx)."""

from __future__ import annotations

from collections.abc import Sequence

from modgraph.diagnostics import Diagnostic

SHOWN = 4  # names of a list in a message


def listed(names: Sequence[str]) -> str:
    """Names for a message, the first of many."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


class NoRecipe(Diagnostic):
    """A training needs a recipe: a YAML file beside the spec, of the same name, or one named with `--recipe`."""

    code = "MG501"
    message = 'there is no recipe "{path}"'
    help = "write one beside the spec, or name one with --recipe FILE"
    path: str


class BadYaml(Diagnostic):
    """A recipe is a YAML mapping with the sections model, start, data and train; a map of weights is one too."""

    code = "MG502"
    message = "this YAML cannot be used: {reason}"
    help = "write a mapping of plain values and lists, as the files in specs do"
    reason: str


class UnknownKey(Diagnostic):
    """A recipe has a key that nothing reads."""

    code = "MG503"
    message = '{section} has no key "{key}"'
    help = "{suggestion}"
    section: str
    key: str
    suggestion: str


class BadValue(Diagnostic):
    """A key of a recipe has a value of the wrong kind or out of range."""

    code = "MG504"
    message = "{key} {problem}"
    help = "{key}: {meaning}"
    key: str
    problem: str
    meaning: str


class MissingKey(Diagnostic):
    """A recipe lacks a key that has no default."""

    code = "MG505"
    message = "{section} needs {key}: {meaning}"
    help = "add a line: {key}: …"
    section: str
    key: str
    meaning: str


class UnknownChoice(Diagnostic):
    """A recipe names a data set, optimizer or schedule that does not exist."""

    code = "MG506"
    message = 'there is no {what} called "{name}"'
    help = "{suggestion}"
    what: str
    name: str
    suggestion: str


class DuplicateKey(Diagnostic):
    """A mapping of a recipe has the same key twice."""

    code = "MG507"
    message = '"{key}" stands here twice'
    help = "keep one of them"
    key: str


class BadDataFile(Diagnostic):
    """A file of data cannot be read or is not of the format it should have."""

    code = "MG510"
    message = 'cannot read data from "{path}": {reason}'
    help = "{way_out}"
    path: str
    reason: str
    way_out: str = "check the file and the key of the recipe that names it"


class DataDoesNotFit(Diagnostic):
    """The arrays of a data set do not fit the inputs and targets of the spec."""

    code = "MG511"
    message = "the data does not fit the spec: {reason}"
    help = "{way_out}"
    reason: str
    way_out: str = "arrays are named after the spec's inputs and targets and have their types, examples first"


class NothingToLearn(Diagnostic):
    """Gradient descent needs a declared loss and weights that it may move."""

    code = "MG512"
    message = "there is nothing to train: {reason}"
    help = "add a line such as: loss cross_entropy(logits, label)"
    reason: str


class NoDevice(Diagnostic):
    """A recipe names a device that does not exist here."""

    code = "MG513"
    message = 'there is no device "{device}": {reason}'
    help = "take another: -s train.device=cpu, or auto for an accelerator if there is one"
    device: str
    reason: str


class UnknownMetric(Diagnostic):
    """A recipe watches a metric that this training does not have."""

    code = "MG514"
    message = '{key} watches "{metric}", which is not measured'
    help = "{suggestion}"
    key: str
    metric: str
    suggestion: str


class UnknownTarget(Diagnostic):
    """A recipe says how the labels of a target count, and no cross-entropy of the spec compares with it."""

    code = "MG515"
    message = 'train.labels names "{target}", which no cross_entropy of the spec compares with'
    help = "{suggestion}"
    target: str
    suggestion: str


class CannotStart(Diagnostic):
    """The weights of another run or file do not fit this spec: shapes differ, tensors are missing or have no use."""

    code = "MG516"
    message = 'the weights of "{path}" do not fit: {reason}'
    help = "{way_out}"
    path: str
    reason: str
    way_out: str


class UnknownGrouping(Diagnostic):
    """A recipe sorts the training data by a grouping that it does not have."""

    code = "MG517"
    message = 'train.by: the data has no grouping "{name}"'
    help = "{suggestion}"
    name: str
    suggestion: str


class NotAnImage(Diagnostic):
    """A recipe moves images of an input that the spec does not have, or that is not of images, float[C, H, W]."""

    code = "MG518"
    message = 'train.augment: "{name}" is no input of images'
    help = "{suggestion}"
    name: str
    suggestion: str


class BadImageFolder(Diagnostic):
    """The folders of a data set are not laid out as root/domain/class/image, with the same classes in each domain."""

    code = "MG519"
    message = '"{path}" is not laid out as root/domain/class/image: {reason}'
    help = "{way_out}"
    path: str
    reason: str
    way_out: str = "name the folder that holds the domains as root"


class BadWeightRule(Diagnostic):
    """A rule of a map of weights has patterns that mean nothing.

    `blocks.*.mlp.*.*: [blocks.*.mlp.*.*, blocks.*.expert.#.ffn.*.*]`: a `*` is one part of a name between dots, taken
    over in order; a `#` on the right is every number.
    """

    code = "MG530"
    message = '"{source}: {target}" is no rule: {problem}'
    help = "for example: blocks.*.mlp.*.*: blocks.*.expert.#.ffn.*.*"
    source: str
    target: str
    problem: str


class NoSuchWeight(Diagnostic):
    """A rule of a map of weights gives nothing to the model: it has no weight of any of the names on the right."""

    code = "MG531"
    message = 'the model has no weight "{pattern}"'
    help = "{suggestion}"
    pattern: str
    suggestion: str


class MappedTwice(Diagnostic):
    """Two rules of a map give the same weight."""

    code = "MG532"
    message = 'two rules give the weight "{weight}"'
    help = "keep one of them"
    weight: str


class NotMapped(Diagnostic):
    """A map of weights says of every weight of the model where it comes from, or that it may start afresh."""

    code = "MG533"
    message = "no rule gives {weights}"
    help = "add rules, or list what starts afresh under random"
    weights: str


class BadWeightFile(Diagnostic):
    """A file holds no weights that can be read: it is missing, damaged, of another format, or would run code.

    What can be read is safetensors, and what `torch.save` wrote of tensors by name.
    """

    code = "MG534"
    message = 'cannot read weights from "{path}": {reason}'
    help = "give a .safetensors file, or a state dict saved by torch"
    path: str
    reason: str


class VocabularyDoesNotFit(Diagnostic):
    """A text has fewer words than the spec's `words` and `next` know, or a vocabulary has another number than they."""

    code = "MG520"
    message = "{source} gives {words} words, <unk> included, and the spec knows {size}"
    help = "give the model that many: its words are token[time, {words}], its next class[time, {words}]"
    source: str
    words: int
    size: int


class RunExists(Diagnostic):
    """A folder that already holds a run is not overwritten."""

    code = "MG601"
    message = '"{path}" holds a run already'
    help = "go on with it: --resume {path}, or choose another folder with --out"
    path: str


class NotARun(Diagnostic):
    """A folder is not a run directory, or part of it is missing or damaged."""

    code = "MG602"
    message = '"{path}" is not a run: {reason}'
    help = "a run is a folder that modgraph train has written"
    path: str
    reason: str


class BadCheckpoint(Diagnostic):
    """A checkpoint is missing, truncated, edited, or belongs to another model."""

    code = "MG603"
    message = 'checkpoint "{path}" cannot be used: {reason}'
    help = "delete it to go on from the one before, or train again"
    path: str
    reason: str


class Diverged(Diagnostic):
    """The loss, a gradient or a weight is infinite or not a number, so nothing learnt afterwards would mean anything.

    No checkpoint holds such numbers: the last one is from before, and `--resume` goes on there, to the same end.
    """

    code = "MG604"
    message = "{what} at step {step}"
    help = "lower the learning rate (-s train.optimizer.lr=…), clip gradients (-s train.clip=1.0) or look at the data"
    what: str
    step: int


class DataChanged(Diagnostic):
    """The data of a run are not those that it began with: files have changed, or lie elsewhere.

    A run keeps, in data.json, how many examples each split has and a digest of their values, or for images of their
    files' names and contents; where the files lie does not matter. It goes on, and is measured, with the same data
    only. Numbers that are computed and not read, such as those of turned digits, are not compared, since they differ in
    their last bits from machine to machine; their labels and groups are.
    """

    code = "MG620"
    message = 'the data of "{path}" have changed since it began: {split} {change}'
    help = "{way_out}"
    path: str
    split: str
    change: str
    way_out: str


class NotForEval(Diagnostic):
    """A run is evaluated as it was trained: only its data may be chosen anew."""

    code = "MG605"
    message = '"{name}" cannot be set for an evaluation'
    help = "only keys of data can: -s data.KEY=VALUE"
    name: str


class RunBusy(Diagnostic):
    """Another process trains in this folder; two would overwrite each other's checkpoints."""

    code = "MG606"
    message = 'another training is at work in "{path}"'
    help = "wait for it or stop it, or choose another folder with --out"
    path: str


class OfAnotherRun(Diagnostic):
    """`eval RUN --bundle FILE` measures a bundle of that run: its manifest names the graph and the weights.

    A run that has gone on since the export, or whose best epoch is another now, has other weights than its old bundle.
    """

    code = "MG607"
    message = 'the bundle "{bundle}" holds {what} than the run "{run}"'
    help = "export it again from this run: modgraph export {run} -o {bundle}"
    bundle: str
    run: str
    what: str


class ForeignFiles(Diagnostic):
    """A run begins in a folder that is new or empty: nothing that modgraph did not make is deleted or overwritten."""

    code = "MG608"
    message = '"{path}" holds files that modgraph did not make: {names}'
    help = "choose another folder with --out"
    path: str
    names: str


class RecordLost(Diagnostic):
    """A folder with the files of a run, but without a run.json that can be read, may hold what was learnt."""

    code = "MG609"
    message = '"{path}" looks like a run, but its run.json is missing or damaged'
    help = "put its run.json back to go on with it, or choose another folder with --out"
    path: str


class NeverBegan(Diagnostic):
    """A training was cut off while its folder was laid out, before the first step; or that is going on just now."""

    code = "MG610"
    message = 'the run in "{path}" was cut off before it began'
    help = "begin it again: modgraph train SPEC --out {path}"
    path: str


class RunChanged(Diagnostic):
    """A run keeps the spec, the graph and the recipe that it began with: with others it would be another training."""

    code = "MG611"
    message = 'files of the run "{path}" are missing or not what modgraph wrote: {names}'
    help = (
        "put them back as they were; for other settings begin a new run, from these weights with start: {{run: {path}}}"
    )
    path: str
    names: str


class TooLargeForMemory(Diagnostic):
    """A training asked for more memory than there is.

    A step takes memory for its batch, with `by` for a batch of each group; an E-step of em for `samples` + 1 times its
    own batch, and its table for every decision of every training example.
    """

    code = "MG612"
    message = "the training does not fit into memory: {reason}"
    help = "take fewer examples at once (-s train.batch={batch}), a smaller model, or with em fewer samples"
    reason: str
    batch: int


class NoGradient(Diagnostic):
    """A router that draws its choices passes no gradient, so gradient descent alone would never teach it anything."""

    code = "MG540"
    message = 'router "{router}" draws its choices: gradients do not reach it'
    help = "train with the algorithm em or reinforce (train.algorithm: em)"
    router: str


class NothingDrawn(Diagnostic):
    """The algorithms em and reinforce teach routers that draw their choices, such as `categorical`."""

    code = "MG541"
    message = "the algorithm {algorithm} teaches routers that draw their choices, and the spec has none"
    help = "use the router categorical, or train.algorithm: backprop"
    algorithm: str


class NoLikelihood(Diagnostic):
    """The algorithms em and reinforce judge decisions by how likely the targets are with them.

    A loss tells that if it is `cross_entropy` or `gaussian` and nothing else, without a factor.
    """

    code = "MG542"
    message = "the algorithm {algorithm} judges decisions by a likelihood, and no loss of the spec is one"
    help = "declare one: loss cross_entropy(logits, label), or loss gaussian(prediction, target, variance=0.1)"
    algorithm: str


class NeedsOneProcess(Diagnostic):
    """The table of assignments that em keeps is one, and every process would have its own."""

    code = "MG543"
    message = "the algorithm {algorithm} runs in one process"
    help = "start it without torchrun"
    algorithm: str
