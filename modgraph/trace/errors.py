"""Messages about traces (MG8xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NothingToTrace(Diagnostic, code="MG801"):
    """A trace reports gates, so the model needs a route whose router records them. `every_module` makes no choice."""

    message = '"{path}" has no route that records gates'
    help = "send tokens through a pool by a router: x -> pool by router"


class UnknownSplit(Diagnostic, code="MG802"):
    """The data of a run has no split of that name."""

    message = 'the data of the run has no split "{name}"'
    help = "{suggestion}"


class UnknownRoute(Diagnostic, code="MG803"):
    """The model of a run has no route of that name that records gates."""

    message = 'there is no route "{name}" to trace'
    help = "{suggestion}"


class UnknownTraceSuffix(Diagnostic, code="MG804"):
    """`trace -o` writes what the suffix says: numbers, a summary, a page or a picture; `--html` writes a page."""

    message = '"{path}" has no suffix that trace can write'
    help = "end it in .npz (arrays), .json (the summary), .html (a page), or .png, .svg or .pdf (a view)"


class NotOfAnImage(Diagnostic, code="MG805"):
    """The view `places` renders gates over an image, so the tokens of a route must be places of an input [C, H, W].

    `tokens` and `patch_embed` make such tokens. An op that reduces the axis of tokens or changes its length loses their
    places.
    """

    message = "the tokens of {routes} are no places of an image"
    help = "choose another view, as --view controllers or --view paths, or write numbers: -o trace.npz"


class TooTall(Diagnostic, code="MG806"):
    """A picture has a row for every module of every example and route, and their number is limited."""

    message = "a picture of {rows} rows is more than {most}"
    help = "lower --examples or choose one --route; .npz holds any number"


class NoGroups(Diagnostic, code="MG808"):
    """The view `groups` of a trace compares classes and groups of examples, and the data have none."""

    message = "the examples of {split} have neither one class each nor groups"
    help = "take another view: --view places, or --view training"


class NoHistory(Diagnostic, code="MG809"):
    """The view `training` of a trace renders the use of modules by epoch, from `metrics.jsonl` of the run."""

    message = "the run has no metrics of how its modules were used"
    help = "a run with a finished epoch has, of routers that decide by a distribution, such as cosine and noisy_top_k"


class NotAPicture(Diagnostic, code="MG810"):
    """The views of a trace are pictures. Arrays and summaries hold all of it."""

    message = "--view {view} is a picture, and none is written"
    help = "write one: -o {view}.png, or .svg or .pdf"


class NotFinite(Diagnostic, code="MG807"):
    """The gates of a route are infinite or NaN, because the run's weights are, or its data."""

    message = 'the {record} of route "{route}" are infinite or not a number'
    help = "train again with a lower learning rate"


class NoPaths(Diagnostic, code="MG811"):
    """The view `paths` of a trace follows tokens from route to route, so at least two routes must choose modules for
    the same tokens."""

    message = "there are no two routes that choose modules for the same tokens"
    help = "take another view: --view training, or --view controllers; --route leaves out all routes but one"


class NoControllers(Diagnostic, code="MG812"):
    """The view `controllers` of a trace renders the entropies H_a and H_b by epoch, from `metrics.jsonl` of the run."""

    message = "the run has no metrics of a controller's entropy"
    help = "routers with a distribution over modules have one: categorical, cosine, linear, noisy_top_k"


class NoGrowth(Diagnostic, code="MG842"):
    """The view `growth` of a trace renders the modules that a continual training added, and the novelty of its data,
    from `growth.jsonl` and `detections.jsonl` of the run."""

    message = "no training has looked whether this model should grow"
    help = (
        "take another view: --view places, or --view groups; algorithm: continual trains a spec that says grow … when …"
    )


class NoSteps(Diagnostic, code="MG843"):
    """The view `steps` of a trace renders routes that decide at every step of a time axis: the axis of a scan, one of
    any length, or one of fixed length that holds no places of an image."""

    message = "no route decides at the steps of a time axis"
    help = "take another view: --view places, or --view groups"


class NotKept(Diagnostic, code="MG836"):
    """`trace` writes its result into the run, for `visualize` and other readers; here the run's folder is not
    writable."""

    severity = "warning"
    message = 'the trace is not kept in "{path}": {reason}'
    help = "let the folder be written to, or take the numbers elsewhere: -o trace.json"


class NoRouting(Diagnostic, code="MG837"):
    """A bundle reports what its routers decide only if it was exported with `--routing`: records are more outputs."""

    message = 'the bundle "{path}" does not report what its routers decide'
    help = "export it so: modgraph export RUN -o {path} --routing"


class NoData(Diagnostic, code="MG838"):
    """A run has its data. A bundle has none: name a recipe, or arrays in a file."""

    message = '"{path}" is a bundle, and has no data to be traced on'
    help = "name a recipe, as that of its run: --recipe RUN/recipe.yaml, or arrays named as its inputs: --input x.npz"


class NotForThisTrace(Diagnostic, code="MG839"):
    """`--recipe` or `--input` names the data of a bundle. `-s` overrides the recipe of a run or a bundle."""

    message = "{option} is nothing for {what}"
    help = "leave it out; {instead}"
