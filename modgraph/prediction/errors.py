"""Messages about predictions (MG523 to MG528)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NotAnInput(Diagnostic, code="MG523"):
    """`predict` reads images (.png, .jpg), folders of images, arrays (.npz, .npy), tables (.csv), and texts: the lines
    of a .txt file, or with - of standard input."""

    message = 'cannot predict from "{path}": {reason}'
    way_out = (
        "give images (.png, .jpg), a folder of them, arrays (.npz, .npy), a table (.csv) or lines of text (.txt, -)"
    )


class NoWayFrom(Diagnostic, code="MG524"):
    """A model takes images if its data set says how to scale them, and texts if it says how words become ids. Others
    take only arrays and tables, and so does a model with several inputs."""

    message = '"{path}" is {what}, and {origin} has {reason}'
    help = "give arrays named as its inputs, examples first: predict … x.npz ({inputs})"


class DoesNotFitInput(Diagnostic, code="MG525"):
    """An array, a table or a text does not fit an input: its name, its shape or its values."""

    message = '"{path}" does not fit {origin}: {reason}'
    way_out = "the model takes {inputs}, examples first"


class NoClassNames(Diagnostic, code="MG526"):
    """Names of classes come from the data set: folders and files of columns have them, arrays have none. Numbers count
    from 0."""

    severity = "warning"
    message = '{origin} has no names for the classes of "{target}", so it prints their numbers'
    help = "train on data that names its classes, such as class_folders or conll"


class NothingToPredict(Diagnostic, code="MG527"):
    """A model without inputs, or whose outputs are all statistics of a batch, predicts nothing for an example."""

    message = "{origin} has no input, or no output for each example"
    help = "declare both in the spec: input x: float[4], output y"
