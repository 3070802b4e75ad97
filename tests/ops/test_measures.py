"""Which values of a metric are better, by its name alone, as metrics of a graph say it."""

from __future__ import annotations

import pytest

import modgraph
from modgraph.metrics.metrics import Metrics
from modgraph.ops.measures import is_larger_better

SPECS = ["smn", "gmoe_digits", "modular_networks_lm", "mt_rmn"]


@pytest.mark.parametrize("path", [f"specs/{name}.mod" for name in SPECS])
def test_the_name_of_a_metric_says_what_its_measure_says(path: str) -> None:
    expected = Metrics(modgraph.load(path).ir, "domain", ["a"]).larger_is_better
    found = {name: is_larger_better(f"test.{name}") for name in expected}
    assert {name: bool(each) for name, each in found.items()} == expected
    controllers = [name for name, each in found.items() if each is None]
    assert all("H_" in name or "use." in name for name in controllers), controllers


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("test.accuracy", True),
        ("held_out.domain.sketch.accuracy", True),
        ("validation.loss.f1", True),
        ("forgetting", False),
        ("test.loss.cross_entropy", False),
        ("validation.total_loss", False),
        ("test.mae", False),
        ("epochs", None),
        ("test.use.0", None),
    ],
)
def test_losses_and_errors_are_better_if_small(name: str, better: bool | None) -> None:
    assert is_larger_better(name) is better
