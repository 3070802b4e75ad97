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
    way_out = "name arrays as the spec's inputs and targets, with their types, examples first"


def bad_file(path: str, reason: str, way_out: str = BadDataFile.way_out) -> ModgraphError:
    """Return the error for a data file that cannot be read."""
    return ModgraphError([BadDataFile(path=path, reason=reason, way_out=way_out)])


def does_not_fit(reason: str, way_out: str = DataDoesNotFit.way_out) -> ModgraphError:
    """Return the error for arrays that do not fit the spec."""
    return ModgraphError([DataDoesNotFit(reason=reason, way_out=way_out)])


class DataNotGiven(Diagnostic, code="MG522"):
    """A run keeps the fingerprints of data from Python, but not the data."""

    message = "the run does not keep its data, which came from Python"
    help = "pass them again, by split: run.evaluate(dict(test=dataset)), run.resume(dict(train=dataset, test=dataset))"


class UnknownArray(Diagnostic, code="MG521"):
    """A file has an array that is no input and no target of the spec, and lacks one that is. With a misspelt name the
    model would train without the array: without the lengths of examples it would learn from padding."""

    message = 'unknown array "{name}" in "{path}"'
    help = "{suggestion}"


class LabelsBeyond(Diagnostic, code="MG258"):
    """A named axis of classes may have fewer classes than the labels, since a continual training adds classes. Any
    other training or measurement needs a model with all of them."""

    message = '"{target}" contains class {label}, but the model has {classes} classes'
    help = "give the spec all classes of one task, and train tasks in sequence: -s train.algorithm.name=continual"


class BadImageFolder(Diagnostic, code="MG519"):
    """The folders of a data set have another layout than root/domain/class/image with the same classes in each domain
    (`image_folders`), or root/class/image (`class_folders`)."""

    message = '"{path}" does not have the layout {layout}: {reason}'
    way_out = "set root to the folder that contains the domains"
    layout = "root/domain/class/image"


class VocabularyDoesNotFit(Diagnostic, code="MG520"):
    """A text, a vocabulary or a tokenizer has another number of words than the spec's `words` and `next`.

    A tokenizer.json may have fewer. One that is trained has a piece for each of 256 bytes, and as many more as its text
    gives.
    """

    message = "{source} has {words} {units}, but the spec has {size}"
    help = "give the model that many: words as token[time, {words}], next as class[time, {words}]"


class UnknownClass(Diagnostic, code="MG613"):
    """A sequence of tasks names a class, by name or number, that its data set does not have."""

    message = "unknown class {name} in {key}"
    help = "{suggestion}"


class ClassTwice(Diagnostic, code="MG614"):
    """A class occurs twice in a sequence of tasks with the same shift, so two labels would mean the same."""

    message = '{key}: task "{task}" already has class {name} with the same shift'
    help = "remove it from one of the two, or give one another shift: shift: inverted"


class NoExamples(Diagnostic, code="MG615"):
    """A task of a sequence has no examples in a split, or one of its classes has none for training."""

    message = "{key}: {split} has no examples of {what}"
    help = "choose other classes, or give data.of more examples, for example by a larger limit"


class CannotShift(Diagnostic, code="MG616"):
    """A task of a sequence shifts its images, but the input is no image, or is not in the scale of its data set
    (without one: 0 for black to 1 for white)."""

    message = '{key} shifts images, but "{input}" {reason}'
    help = "remove the shift, or name the input with the images: -s data.input=NAME"


class DataChanged(Diagnostic, code="MG620"):
    """The data of a run differ from those at its start.

    A run keeps in data.json the number of examples of each split and a digest of their values, or for images of their
    files' names and contents; paths do not matter. It resumes, and is measured, with the same data only. Computed
    numbers, such as rotated digits, are not compared, since their last bits differ between machines; their labels and
    groups are. A run whose test found a file that cannot be read resumes once that file is repaired or removed.
    """

    message = 'the data of "{path}" have changed since the run began: {split} {change}'


class UnknownGrouping(Diagnostic, code="MG517"):
    """A recipe groups the training data by a grouping that the data do not have."""

    message = 'unknown grouping "{name}" in train.by'
    help = "{suggestion}"


class NothingToBucket(Diagnostic, code="MG544"):
    """A recipe asks for batches of similar lengths, but all examples have one length: no input has an axis of any
    length, or the data have no lengths along it."""

    message = "train.bucket: the data have no lengths of examples"
    help = (
        "remove train.bucket, or give an input an axis of any length, float[time, 8], and the data an array time_length"
    )
