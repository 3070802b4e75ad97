"""Confusion matrices name the classes where the data name them."""

from __future__ import annotations

import numpy as np

from modgraph.metrics.details import Details

COUNTS = np.array([[3, 1], [0, 12]])


def lines(**known: tuple[str, ...]) -> list[str]:
    found = Details(targets={"y": {}}, labels={"y": 16}, confusion={"y": COUNTS}, classes=known)
    return str(found).splitlines()[2:]


def test_rows_and_columns_have_the_names_of_classes() -> None:
    assert lines(y=("cat", "dog")) == ["       cat dog", "  cat    3   1", "  dog    0  12"]


def test_classes_without_a_name_keep_their_numbers() -> None:
    assert lines() == lines(z=("cat", "dog")) == ["      0  1", "  0   3  1", "  1   0 12"]
    assert lines(y=("cat",)) == ["       cat   1", "  cat    3   1", "    1    0  12"]


def test_columns_of_long_names_have_the_numbers_that_stand_before_the_rows_names() -> None:
    long = "a" * 70
    assert lines(y=(long, "dog")) == [
        f"  {' ' * 72}   0  1",
        f"  0 {long}   3  1",
        f"  1 dog{' ' * 67}   0 12",
    ]


def test_json_names_rows_and_columns_as_the_text_does() -> None:
    found = Details(labels={"y": 16}, confusion={"y": COUNTS, "z": COUNTS}, classes={"y": ("cat", "dog", "cow")})
    record = found.as_json()
    assert record["y.classes"] == ["cat", "dog"], "a name beyond the last class stands for nothing"
    assert "z.classes" not in record
