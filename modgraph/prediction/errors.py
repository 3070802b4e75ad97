"""Messages about predictions (MG523 to MG527, MG560 to MG564)."""

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


class NoTexts(Diagnostic, code="MG560"):
    """A run continues texts if its data say how words become ids, as the data set `text` does."""

    message = '{origin} does not say which words the ids of "{name}" are'
    help = "train on data that have words (data: {{name: text}}), or use model.generate(ids) in Python"


class UnknownWords(Diagnostic, code="MG561"):
    """A model has the words of its vocabulary; every other word counts as `<unk>`."""

    severity = "warning"
    message = "{origin} does not know {words}, so each counts as <unk>"
    help = "use words of the training data; runs keep them in vocabulary.json"


class UnknownStop(Diagnostic, code="MG562"):
    """A text ends before a stop word, which must be one of the model's words."""

    message = 'the stop word "{word}" is no word of {origin}'
    help = "{suggestion}"


class BadSampling(Diagnostic, code="MG563"):
    """Temperature 0 takes the most likely word. Higher ones sample, among the `--top-k` most likely, or among the most
    likely that have together a probability of `--top-p`."""

    message = "{reason}"
    help = "for example: --temperature 0.8 --top-k 50 --top-p 0.95"


class NoSuchRoute(Diagnostic, code="MG564"):
    """`--trace` shows the modules that a route chose for each word. A route inside a scan, and one that sends every
    word to all modules, has no such choice."""

    message = '{origin} has no route "{name}" that chooses modules for each word'
    help = "{suggestion}"
