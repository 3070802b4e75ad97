"""An unknown key of a recipe: the field's other words are known, and keys of other sections are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from modgraph.diagnostics import ModgraphError
from modgraph.training.recipe import read_recipe, read_with_spec

RECIPE = {"data": {"name": "npz", "train": "toy.npz"}, "train": {"epochs": 2}}
SUGGESTED = {
    "train.learning_rate": "train.optimizer.lr",
    "train.lr": "train.optimizer.lr",
    "train.weight_decay": "train.optimizer.weight_decay",
    "train.batch_size": "batch",
    "train.num_epochs": "epochs",
    "train.patience": "train.early_stop.patience",
    "train.warmup_steps": "train.schedule.warmup",
    "train.optimiser": "optimizer",
    "data.batch": "train.batch",
    "epochs.x": "train.epochs",
}


def messages_of(**overrides: Any) -> list[str]:
    with pytest.raises(ModgraphError) as caught:
        read_recipe(RECIPE, {key.replace("__", "."): value for key, value in overrides.items()})
    return [f"{each.text()} · {each.advice()}" for each in caught.value.diagnostics]


@pytest.mark.parametrize("key", SUGGESTED)
def test_the_key_that_was_meant_is_suggested(key: str) -> None:
    (message,) = messages_of(**{key: 1})
    assert f'did you mean "{SUGGESTED[key]}"?' in message, message


@pytest.mark.parametrize(
    ("name", "meant"), [("lr", "train.optimizer.lr"), ("batch_size", "train.batch"), ("widht", "width")]
)
def test_a_setting_without_its_section_is_no_parameter_of_the_spec(tmp_path: Path, name: str, meant: str) -> None:
    (tmp_path / "m.mod").write_text("model m(width=4) { input x: float[4] y = x -> linear(width) output y }")
    with pytest.raises(ModgraphError, match=f'did you mean "{meant}"'):
        read_with_spec(RECIPE, tmp_path / "m.mod", {f"model.{name}": 1})


def test_keys_of_a_section_are_checked_although_its_name_is_wrong() -> None:
    messages = messages_of(train__optimizer__name="Adam", train__optimizer__learning_rate=0.1)
    text = "\n".join(messages)
    assert len(messages) == 2 and 'did you mean "adam"?' in text and 'did you mean "lr"?' in text, text
    (message,) = messages_of(train__optimizer__name="quick", train__optimizer__lr=0.1)
    assert "unknown optimizer" in message, "a key that some optimizer has may be right"


def test_a_file_instead_of_a_data_set_is_written_in_its_place() -> None:
    (message,) = messages_of(data__name="toy.npz")
    assert "write data: {name: npz, train: toy.npz}" in message, message
