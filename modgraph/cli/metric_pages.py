"""What `explain` knows of the metrics that a training prints, and of mixtures of experts under other names."""

from __future__ import annotations

import re

METRICS = {  # docs/recipes.md has the same table
    "total_loss": "the sum of all losses, each with its weight; smaller is better",
    "accuracy": "the share of labels that are the likeliest class, of each target of a cross-entropy, binary ones too; "
    "with several targets also their mean; larger is better",
    "perplexity": "exp of the mean cross-entropy of a label, where labels stand along an axis; smaller is better",
    "bits_per_character": "the cross-entropy in bits of a text by characters, where data are pieces of words (bpe), on "
    "validation and test data; smaller is better",
    "mse": "the mean squared error of a target of numbers; smaller is better",
    "H_a": "the mean entropy of a decision of a router with a distribution over modules, in nats: low if it is sure",
    "H_b": "the entropy of the mean distribution of a router, in nats: low if every decision is the same, which is "
    "collapse",
    "use": "use.3 is the share of the choices of a route that took module 3; files have it, the terminal does not",
    "f1": "F1 of each class, its mean over classes, if train.metrics asks for it; larger is better",
    "auc": "area under the ROC curve of a target of classes, if train.metrics asks for it; larger is better",
    "mae": "mean absolute error of a target of numbers, if a loss is l1 or huber or train.metrics asks for it; smaller "
    "is better",
    "r2": "R², the share of the variance that is explained, if train.metrics asks for it; larger is better",
}
EXAMPLE = ("pool expert[4] = linear(8)", "router gate = linear(k=1)", "y = x -> expert by gate")
MIXTURE = re.compile(r"moes?|(sparse )?mixtures? of experts?|experts?|gates?|gating|gating network", re.IGNORECASE)


def explain_metric(name: str) -> str | None:
    """The page of a metric, also behind a split, a target or a route: validation.accuracy, layer.0.expert.H_a."""
    path = name.removeprefix("test.").removeprefix("train.").removeprefix("validation.")
    *front, last = path.split(".")
    is_share = last.isdigit() and front[-1:] == ["use"]
    key = "use" if is_share else last
    if key not in METRICS or (key == "use" and not is_share):
        return None
    lines = [f"{name}: a metric", "", f"    {METRICS[key]}"]
    if key not in ("use", "H_a", "H_b"):
        lines += [
            "",
            f"    written train: {{validation: 0.1, best: validation.{path}}} to keep the weights of its best epoch",
        ]
    return "\n".join(lines)


def explain_mixture(name: str) -> str | None:
    """The page of words for a mixture of experts: how pools and routers write it."""
    if MIXTURE.fullmatch(name.replace("_", " ").replace("-", " ")) is None:
        return None
    lines = [f"{name}: a mixture of experts is a pool of modules and a router that chooses among them", ""]
    lines += [f"    {line}" for line in EXAMPLE]
    return "\n".join(
        [*lines, "", "modgraph explain pool, router or linear describes each; so does docs/guides/experts.md."]
    )
