"""Messages about sweeps (MG64x, MG65x)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class RangeInGrid(Diagnostic, code="MG640"):
    """A grid tries every combination of alternatives. A range has no end of values, so points of it are sampled, at
    random or by Optuna."""

    message = "a grid cannot try every value of {key}={range}"
    help = "list alternatives: {key}=[{low}, {high}], or sample points: --random 20 (in a sweep file random: 20)"


class BadRange(Diagnostic, code="MG641"):
    """A range goes from a number to a larger one: `log(1e-4, 1e-2)`, `uniform(0, 0.5)`, `integers(8, 64)`; in a sweep
    file `{log: [1e-4, 1e-2]}`."""

    message = "{key}: the range {given} {problem}"
    help = "for example: {example_range}"


class NoAlternatives(Diagnostic, code="MG642"):
    """A list in a sweep holds alternatives. An empty one leaves nothing to train."""

    message = "{key} has no alternatives: its list is empty"
    help = "name some, {key}=[1, 2]; an empty list as a value is a list in it: {key}=[[]]"


class ListIsAlternatives(Diagnostic, code="MG643"):
    """A list in a sweep holds alternatives, so a parameter whose value is a list needs a list of lists."""

    message = "{key} is a list, and a sweep tries each of {given} by itself"
    help = "a list as a value is a list in a list: {key}=[[{given}]]"


class SetTwice(Diagnostic, code="MG644"):
    """Two parts of a sweep set the same key, so one of them would count for nothing."""

    message = "{key} is set twice: by {first} and by {second}"
    help = "{way_out}"


class SectionInSweep(Diagnostic, code="MG645"):
    """A sweep sets keys of a recipe by dotted names, and parameters of the spec by plain ones."""

    message = '"{key}" is a section of recipes, not a key'
    help = "write the key with dots, such as {key}.{example_key}"


class TooManyPoints(Diagnostic, code="MG646"):
    """A sweep has at most 100,000 trainings."""

    message = "this grid has {count:,} trainings: at most {limit:,}"
    help = "sample some of them: --random 20 (in a sweep file random: 20)"


class TooFewPoints(Diagnostic, code="MG647"):
    """Random points differ from each other, so there are no more of them than the grid has."""

    message = "{what} asks for {count:,} points, and this sweep has only {found:,}"
    help = "{way_out}"


class NoSuchSweep(Diagnostic, code="MG648"):
    """A sweep file refers to its sweeps by name."""

    message = 'unknown sweep "{name}" in {key}'
    help = "{suggestion}"


class CircularStart(Diagnostic, code="MG649"):
    """A sweep that starts from the runs of another trains after it, so no sweep can start from itself."""

    message = "sweeps cannot start from each other in a circle: {names}"
    help = "remove one start"


class NothingToStartFrom(Diagnostic, code="MG650"):
    """`start: SWEEP` gives each point the weights of one run of that sweep: the one with equal values of all keys that
    both vary."""

    message = 'the sweep "{sweep}" has {found} to give "{point}" its first weights'
    help = "{way_out}"


class IsoNeedsVary(Diagnostic, code="MG651"):
    """Points get the same cost by a whole-number parameter of the spec, which `vary` names."""

    message = "{problem}"
    help = "{suggestion}"


class IsoOutOfReach(Diagnostic, code="MG652"):
    """No value of the parameter gives a point the cost that all are to have, to within 2 %."""

    message = "no {vary} gives {target:,} {what} to within 2 %: {nearest}"
    help = "{way_out}"


class PointChanged(Diagnostic, code="MG658"):
    """A sweep plans all points at its beginning. The spec, what it imports, or the recipe was changed while it ran."""

    message = 'the spec "{spec}" or its recipe has changed since "{point}" was planned'
    help = "start the same command again: it plans anew, and keeps the runs that are still as planned"


class RecipeForSweep(Diagnostic, code="MG659"):
    """A sweep file names a spec and what to vary. A recipe has the sections data and train."""

    message = "this is a recipe, not a sweep file"
    help = "name its spec: modgraph sweep {spec}"


class NeedsFile(Diagnostic, code="MG653"):
    """A point of a sweep reads a file or folder that does not exist, so its training could not begin."""

    message = 'training needs "{path}", which does not exist'
    help = "name one that does, relative to the current folder: -s {key}=PATH"


class NoSuchPoint(Diagnostic, code="MG654"):
    """A sweep file states facts about its named points, by their names."""

    message = 'unknown point "{name}" in about'
    help = "{suggestion}"


class BadSweepName(Diagnostic, code="MG655"):
    """The runs of a sweep stand in a folder of its name."""

    message = 'a sweep cannot be called "{name}"'
    help = "use letters, digits, - and _, for example: {example_name}"


class NotASetting(Diagnostic, code="MG656"):
    """A sweep has keys such as `train.epochs`, or names of parameters such as `width`."""

    message = 'a sweep cannot set "{key}"'
    help = "write a parameter of the spec, such as width, or a dotted key of the recipe, such as train.epochs"


class SearchesTwice(Diagnostic, code="MG657"):
    """The points of a sweep are a grid, or sampled at random, or proposed by Optuna."""

    message = "a sweep has random points or those of optuna, not both"
    help = "remove random or optuna"


# ---------------------------------------------------------------- the folder of a sweep


class NotASweepFolder(Diagnostic, code="MG660"):
    """A sweep needs a new or empty folder, or that of an earlier sweep, which it extends."""

    message = 'no sweep can be kept in "{path}": {reason}'
    help = "choose another folder: --out DIR"


class SweepBusy(Diagnostic, code="MG661"):
    """Another process runs a sweep in this folder. Two would train the same points."""

    message = 'another process runs a sweep in "{path}"'
    help = "wait for it or stop it, or choose another folder: --out DIR"


class OtherTraining(Diagnostic, code="MG662"):
    """The folder of a point contains a run with another spec, or by another recipe, than the point now has."""

    message = 'the run in "{path}"{more} is another training than the point of this name'
    help = "choose another folder for this sweep: --out DIR"


class CannotSearch(Diagnostic, code="MG663"):
    """An adaptive search improves one metric, which every training must give at its end or after its epochs."""

    message = 'the search has no metric "{metric}" of run "{run}"'
    help = "{suggestion}"


class WorkersFail(Diagnostic, code="MG664"):
    """A sweep trains in processes of its own, and these end before they can begin."""

    message = "the processes that train end before they begin: {reason}"
    help = "free some memory, or train in fewer processes: --jobs 1"


class CannotImprove(Diagnostic, code="MG665"):
    """A search improves one metric of its runs: a loss, or a measure such as accuracy, by `split.metric`."""

    message = 'a search cannot improve "{metric}": it is no loss and no measure'
    help = "{suggestion}"


class CannotPrune(Diagnostic, code="MG666"):
    """A search stops trainings by what they measure after each epoch, which test data are not for."""

    message = 'a search cannot prune by "{metric}", which is measured at the end of a training'
    help = "name a metric of train or validation: validation.{name}, and hold out data: -s train.validation=0.1"
