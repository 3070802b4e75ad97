"""Messages about data sets and their files (MG5xx, MG6xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic, ModgraphError


class BadDataFile(Diagnostic, code="MG510"):
    """A data file cannot be read, or has another format than its data set expects."""

    message = 'cannot read data from "{path}": {reason}'
    way_out = "check the file and the key of the recipe that names it"


class DataDoesNotFit(Diagnostic, code="MG511"):
    """The arrays of a data set do not fit the inputs and targets of the spec."""

    message = "the data does not fit the spec: {reason}"
    way_out = "arrays are named after the spec's inputs and targets and have their types, examples first"


def bad_file(path: str, reason: str, way_out: str = BadDataFile.way_out) -> ModgraphError:
    """Return the error for a data file that cannot be read."""
    return ModgraphError([BadDataFile(path=path, reason=reason, way_out=way_out)])


def does_not_fit(reason: str, way_out: str = DataDoesNotFit.way_out) -> ModgraphError:
    """Return the error for arrays that do not fit the spec."""
    return ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out)])


class DataNotGiven(Diagnostic, code="MG522"):
    """The data of a run were given in Python. The run keeps their fingerprints, not the data."""

    message = "the data were given in Python, and a run does not keep them"
    help = "give them again, by split: run.evaluate(dict(test=dataset)), run.resume(dict(train=dataset, test=dataset))"


class UnknownArray(Diagnostic, code="MG521"):
    """A file has an array that is neither an input nor a target of the spec, and lacks one that is. If its name is
    misspelt, the model would train without it: without the lengths of examples it would learn from padding."""

    message = '"{path}" has an array "{name}", and the spec has no input or target of that name'
    help = "{suggestion}"


class LabelsBeyond(Diagnostic, code="MG258"):
    """Labels of a target whose classes are a named axis may lie beyond those of the model, since a continual training
    adds classes. Any other training or measurement needs a model with all of them."""

    message = 'array "{target}" holds the class {label}, and the model has {classes}'
    help = (
        "give the spec as many classes as are learnt at once, of several tasks those of the first; tasks follow each "
        "other with -s train.algorithm.name=continual"
    )


class BadImageFolder(Diagnostic, code="MG519"):
    """The folders of a data set have another layout than root/domain/class/image with the same classes in each domain
    (`image_folders`), or root/class/image (`class_folders`)."""

    message = '"{path}" does not have the layout {layout}: {reason}'
    way_out = "name the folder that holds the domains as root"
    layout = "root/domain/class/image"


class VocabularyDoesNotFit(Diagnostic, code="MG520"):
    """A text or a vocabulary has another number of words than the spec's `words` and `next` declare."""

    message = "{source} gives {words} words, <unk> included, and the spec knows {size}"
    help = "give the model that many: its words are token[time, {words}], its next class[time, {words}]"


class UnknownClass(Diagnostic, code="MG613"):
    """A sequence of tasks names a class, by name or number, that its data set does not have."""

    message = "{key}: there is no class {name} in the data"
    help = "{suggestion}"


class ClassTwice(Diagnostic, code="MG614"):
    """A class occurs twice in a sequence of tasks with the same shift. Its two labels would have one meaning."""

    message = '{key}: class {name} is taken already by task "{task}", with the same shift'
    help = "take it out of one of the two, or give one another shift: shift: inverted"


class NoExamples(Diagnostic, code="MG615"):
    """A task of a sequence has no examples in a split, or one of its classes has none for training."""

    message = "{key}: {split} has no examples of {what}"
    help = "choose other classes, or let data.of have more examples: a larger limit, say"


class CannotShift(Diagnostic, code="MG616"):
    """A task of a sequence shifts its images, but the input is no image, or its numbers are not in the scale of its
    data set (from 0 for black to 1 for white, where it has none)."""

    message = '{key} moves images, and "{input}" {reason}'
    help = "leave out the shift, or name the input that holds the images: -s data.input=NAME"


class DataChanged(Diagnostic, code="MG620"):
    """The data of a run differ from those that it began with.

    A run keeps in data.json the number of examples of each split and a digest of their values, or for images of their
    files' names and contents; paths do not matter. It resumes, and is measured, with the same data only. Computed
    numbers, such as those of rotated digits, are not compared, since their last bits differ between machines; their
    labels and groups are.
    """

    message = 'the data of "{path}" have changed since it began: {split} {change}'


class UnknownGrouping(Diagnostic, code="MG517"):
    """A recipe groups the training data by a grouping that does not exist."""

    message = 'train.by: the data has no grouping "{name}"'
    help = "{suggestion}"


class NothingToBucket(Diagnostic, code="MG544"):
    """A recipe asks for batches of similar lengths, but all examples have one length: no input has an axis of any
    length, or the data have no lengths along it."""

    message = "train.bucket: the data have no lengths of examples"
    help = (
        "leave train.bucket out, or give an input an axis of any length, float[time, 8], and the data its lengths, as "
        "the array time_length"
    )
