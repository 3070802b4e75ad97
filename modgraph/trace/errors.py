"""Messages about traces (MG8xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NothingToTrace(Diagnostic):
    """A trace shows gates, so the model needs a route whose router records them. `every_module` decides nothing."""

    code = "MG801"
    message = '"{path}" has no route that records gates'
    help = "send tokens through a pool by a router: x -> pool by router"


class UnknownSplit(Diagnostic):
    """The data of a run has no split of that name."""

    code = "MG802"
    message = 'the data of the run has no split "{name}"'
    help = "{suggestion}"


class UnknownRoute(Diagnostic):
    """The model of a run has no route of that name that records gates."""

    code = "MG803"
    message = 'there is no route "{name}" to trace'
    help = "{suggestion}"


class UnknownTraceSuffix(Diagnostic):
    """`trace -o` writes what the suffix says: numbers, a summary, a page or a picture; `--html` writes a page."""

    code = "MG804"
    message = '"{path}" has no suffix that trace can write'
    help = "end it in .npz (arrays), .json (the summary), .html (a page), or .png, .svg or .pdf (a view)"


class NotOfAnImage(Diagnostic):
    """A picture lays gates over an image, so the tokens of a route must be places of an input [C, H, W].

    `tokens` and `patch_embed` make such tokens. An op that reduces the axis of tokens or changes
    its length loses their places.
    """

    code = "MG805"
    message = "the tokens of {routes} are no places of an image"
    help = "choose another view, as --view controllers or --view paths, or write numbers: -o trace.npz"


class TooTall(Diagnostic):
    """A picture has a row for every module of every example and route, and only so many can be looked at."""

    code = "MG806"
    message = "a picture of {rows} rows is more than {most}"
    help = "lower --examples or choose one --route; .npz holds any number"


class NoGroups(Diagnostic):
    """The view `groups` of a trace tells examples apart by class and by groups of the data, and there are none."""

    code = "MG808"
    message = "the examples of {split} have neither one class each nor groups"
    help = "take another view: --view places, or --view training"


class NoHistory(Diagnostic):
    """The view `training` of a trace shows what `metrics.jsonl` of the run says of each epoch."""

    code = "MG809"
    message = "the run has not recorded how its modules were used"
    help = "a run with a finished epoch has, of routers that decide by a distribution, such as cosine and noisy_top_k"


class NotAPicture(Diagnostic):
    """The views of a trace are pictures; arrays and summaries hold everything."""

    code = "MG810"
    message = "--view {view} is a picture, and none is written"
    help = "write one: -o {view}.png, or .svg or .pdf"


class NotFinite(Diagnostic):
    """The gates of a route are infinite or not a number: the run's weights are, or its data."""

    code = "MG807"
    message = 'the {record} of route "{route}" are infinite or not a number'
    help = "train again with a lower learning rate"


class NoPaths(Diagnostic):
    """The view `paths` of a trace follows tokens from route to route, so at least two routes must choose modules for
    the same tokens."""

    code = "MG811"
    message = "there are no two routes that choose modules for the same tokens"
    help = "take another view: --view training, or --view controllers; --route leaves out all routes but one"


class NoControllers(Diagnostic):
    """The view `controllers` of a trace shows the entropies H_a and H_b that `metrics.jsonl` has of each epoch."""

    code = "MG812"
    message = "the run has not recorded the entropy of a controller"
    help = "routers with a distribution over modules have one: categorical, cosine, linear, noisy_top_k"


class NoGrowth(Diagnostic):
    """The view `growth` of a trace shows what a continual training has added to its model, and how novel it found its
    data, as `growth.jsonl` and `detections.jsonl` of the run tell."""

    code = "MG842"
    message = "no training has looked whether this model should grow"
    help = (
        "take another view: --view places, or --view groups; algorithm: continual trains a spec that says grow … when …"
    )


class NoSteps(Diagnostic):
    """The view `steps` of a trace shows routes that decide at every step of a time axis: one that a scan goes along,
    one of any length, or one of fixed length that holds no places of an image."""

    code = "MG843"
    message = "no route decides at the steps of a time axis"
    help = "take another view: --view places, or --view groups"


class NotKept(Diagnostic):
    """`trace` leaves what it found in the run, for `visualize` and the like, and the run's folder cannot be written."""

    code = "MG836"
    severity = "warning"
    message = 'the trace is not kept in "{path}": {reason}'
    help = "let the folder be written to, or take the numbers elsewhere: -o trace.json"


class NoRouting(Diagnostic):
    """A bundle tells what its routers decide only if it was exported so: their records are further outputs."""

    code = "MG837"
    message = 'the bundle "{path}" does not tell what its routers decide'
    help = "export it so: modgraph export RUN -o {path} --routing"


class NoData(Diagnostic):
    """A run knows its data, a bundle does not: they are those of a recipe, or arrays in a file."""

    code = "MG838"
    message = '"{path}" is a bundle, and has no data to be traced on'
    help = "name a recipe, as that of its run: --recipe RUN/recipe.yaml, or arrays named as its inputs: --input x.npz"


class NotForThisTrace(Diagnostic):
    """`--recipe` or `--input` names the data of a bundle; `-s` chooses anew what a run or a recipe has."""

    code = "MG839"
    message = "{option} is nothing for {what}"
    help = "leave it out; {instead}"
