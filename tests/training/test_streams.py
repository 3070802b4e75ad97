"""A training whose output nobody reads any more is trained to its end."""

from __future__ import annotations

import json
import os
from pathlib import Path

from modgraph.cli import main
from tests.children import in_a_child
from tests.small_runs import begin, final_weights


def test_a_training_outlasts_the_readers_of_its_output(spec: Path, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    expected = begin(spec, tmp_path / "read")
    arguments = ["train", str(spec), "--out", str(tmp_path / "unread")]
    assert in_a_child(lambda: main(arguments), writer, writer) == 0
    assert json.loads((tmp_path / "unread/run.json").read_text())["metrics"] == expected
    assert final_weights(tmp_path / "unread") == final_weights(tmp_path / "read")
