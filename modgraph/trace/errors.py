"""Messages about traces (MG8xx)."""

from __future__ import annotations

from modgraph.diagnostics import Diagnostic


class NothingToTrace(Diagnostic, code="MG801"):
    """A trace reports gates, so the model needs a route whose router records them. `every_module` makes no choice,
    and a route over more than 65,536 modules records nothing by itself."""

    message = '"{path}" has no route that records gates'
    help = "route tokens through a pool by a router: x -> pool by router"


class UnknownSplit(Diagnostic, code="MG802"):
    """The data of a run has no split of this name."""

    message = 'unknown split "{name}" of the run\'s data'
    help = "{suggestion}"


class UnknownRoute(Diagnostic, code="MG803"):
    """The model has no route of this name that records gates."""

    message = 'unknown route "{name}"'
    help = "{suggestion}"


class UnknownTraceSuffix(Diagnostic, code="MG804"):
    """The suffix of `trace -o` chooses numbers, a summary, a page or a picture; `--html` writes a page."""

    message = 'cannot write a trace to "{path}": unknown suffix'
    help = "use .npz (arrays), .json (the summary), .html (a page), or .png, .svg or .pdf (a view)"


class NotOfAnImage(Diagnostic, code="MG805"):
    """The view `places` renders gates over an image, so the tokens of a route must be places of an input [C, H, W].

    `tokens` and `patch_embed` make such tokens. An op that reduces the axis of tokens or changes its length loses their
    places.
    """

    message = "the tokens of {routes} are not places of an image"
    help = "choose another view, --view controllers or --view paths, or write numbers: -o trace.npz"


class TooTall(Diagnostic, code="MG806"):
    """A picture has a row for every module of every example and route, and their number is limited."""

    message = "a picture of {rows} rows is too large: at most {most}"
    help = "lower --examples or choose one --route, or write numbers: -o trace.npz"


class NoGroups(Diagnostic, code="MG808"):
    """The view `groups` compares classes and groups of examples, and the data have none."""

    message = "the examples of {split} have no classes and no groups"
    help = "choose another view: --view places, or --view training"


class NoHistory(Diagnostic, code="MG809"):
    """The view `training` renders the use of modules by epoch, from `metrics.jsonl` of the run."""

    message = "the run has no metrics of how its modules were used"
    help = "finish an epoch with a router that decides by a distribution, such as cosine or noisy_top_k"


class NotAPicture(Diagnostic, code="MG810"):
    """The views of a trace are pictures. Arrays and summaries contain all of it."""

    message = "--view {view} needs a picture to write"
    help = "write one: -o {view}.png, or .svg or .pdf"


class NotFinite(Diagnostic, code="MG807"):
    """The gates of a route are infinite or NaN, because the weights of the run or its data are."""

    message = 'the {record} of route "{route}" are infinite or NaN'
    help = "train again with a lower learning rate"


class NoPaths(Diagnostic, code="MG811"):
    """The view `paths` follows tokens from route to route, so at least two routes must choose modules for the same
    tokens."""

    message = "no two routes choose modules for the same tokens"
    help = "choose another view, --view training or --view controllers, or leave out --route"


class NoControllers(Diagnostic, code="MG812"):
    """The view `controllers` renders the entropies H_a and H_b by epoch, from `metrics.jsonl` of the run."""

    message = "the run has no metrics of a controller's entropy"
    help = "use a router with a distribution over modules: categorical, cosine, linear or noisy_top_k"


class NoGrowth(Diagnostic, code="MG842"):
    """The view `growth` renders the modules that a continual training added, and the novelty of its data, from
    `growth.jsonl` and `detections.jsonl` of the run."""

    message = "no training has checked whether this model should grow"
    help = (
        "choose another view, --view places or --view groups, or train a spec with grow … when … by algorithm: "
        "continual"
    )


class NoSteps(Diagnostic, code="MG843"):
    """The view `steps` renders routes that decide at every step of a time axis: the axis of a scan, one of any length,
    or one of fixed length that is not the places of an image."""

    message = "no route decides at the steps of a time axis"
    help = "choose another view: --view places, or --view groups"


class NotKept(Diagnostic, code="MG836"):
    """`trace` writes its result into the run, for `visualize` and other readers. The folder of this run is not
    writable."""

    severity = "warning"
    message = 'cannot keep the trace in "{path}": {reason}'
    help = "make the folder writable, or write the numbers elsewhere: -o trace.json"


class NoRouting(Diagnostic, code="MG837"):
    """A bundle reports the decisions of its routers only after an export with `--routing`: records are more outputs."""

    message = 'bundle "{path}" does not report what its routers decide'
    help = "export it with them: modgraph export RUN -o {path} --routing"


class NoData(Diagnostic, code="MG838"):
    """A run has its data. A bundle has none: name a recipe, or arrays in a file."""

    message = 'bundle "{path}" needs data to trace'
    help = "name a recipe, --recipe RUN/recipe.yaml, or arrays named as its inputs: --input x.npz"


class NotForThisTrace(Diagnostic, code="MG839"):
    """`--recipe` or `--input` names the data of a bundle. `-s` overrides the recipe of a run or a bundle."""

    message = "{option} does not apply to {what}"
    help = "leave it out; {instead}"
