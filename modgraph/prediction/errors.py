"""Messages about predictions (MG523 to MG528)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NotAnInput(Diagnostic, code="MG523"):
    """`predict` reads images (.png, .jpg), folders of images, arrays (.npz, .npy), tables (.csv), and texts: the lines
    of a .txt file, or with - those of standard input."""

    message = 'cannot predict from "{path}": {reason}'
    way_out = (
        "give images (.png, .jpg), a folder of them, arrays (.npz, .npy), a table (.csv) or lines of text (.txt, -)"
    )


class NoWayFrom(Diagnostic, code="MG524"):
    """A model takes images where its data set says how they are scaled, and texts where it says how words become ids.
    Others take arrays and tables only, and so do models with several inputs of which a file gives one."""

    message = '"{path}" is {what}, and {origin} has {reason}'
    help = "give arrays named after its inputs, examples first: predict … x.npz ({inputs})"


class DoesNotFitInput(Diagnostic, code="MG525"):
    """An array, a table or a text that is to be predicted does not fit an input: its name, its shape or its values."""

    message = '"{path}" does not fit {origin}: {reason}'
    way_out = "the model takes {inputs}, examples first"


class NoClassNames(Diagnostic, code="MG526"):
    """Names of classes come from the data set: folders and files of columns have them, arrays have none."""

    severity = "warning"
    message = '{origin} has no names for the classes of "{target}": their numbers are printed, from 0'
    help = "train on data that names its classes, such as class_folders or conll"


class NothingToPredict(Diagnostic, code="MG527"):
    """A model without inputs, or whose outputs are all statistics of a batch, predicts nothing for an example."""

    message = "{origin} has no input, or no output for each example"
    help = "declare both in the spec: input x: float[4], output y"
