"""What the documents show is true: every spec in them checks, trains a step and is in the layout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import modgraph
from modgraph.backends.report import random_batch
from modgraph.diagnostics import Report, Source
from modgraph.syntax.format import format_source

LANGUAGE = Path("docs/language.md").read_text()
EXAMPLES = re.findall(r"```mod\n(.*?)```", LANGUAGE, re.S)
README = Path("README.md").read_text()


def name_of(text: str) -> str:
    found = re.search(r"model (\w+)", text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("text", EXAMPLES, ids=name_of)
def test_an_example_of_the_language_is_sound(text: str) -> None:
    program = modgraph.loads(text)
    assert [warning.code for warning in program.warnings if warning.code != "MG406"] == []
    model = program.build()
    computed = model.compute(random_batch(model))
    if computed.losses:
        computed.loss.backward()
    assert format_source(Source("t.mod", text), Report()) == text


def test_the_spec_of_the_readme_is_that_of_the_specs() -> None:
    lines = README.split("    model smn", 1)[1].split("\n    }\n", 1)[0]
    text = "model smn" + lines.replace("\n    ", "\n") + "\n}\n"
    assert modgraph.loads(text).ir == modgraph.load("specs/smn.mod").ir


def test_the_message_of_the_readme_is_what_is_said() -> None:
    documented = re.search(r"    error\[MG202\].*?help: did you mean \"linear\"\?", README, re.S)
    assert documented is not None
    with pytest.raises(modgraph.ModgraphError) as caught:
        modgraph.loads(
            "model net() {\n  input image: float[4]\n  \n  \n  logits = image -> liner(10)\n  output logits\n}",
            "net.mod",
        )
    message = str(caught.value)
    assert [line.strip() for line in documented[0].splitlines()] == [
        line.strip() for line in message.strip().splitlines()[: len(documented[0].splitlines())]
    ]


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = README.split("    import modgraph\n", 1)[1].split("\nAn exported model", 1)[0]
    specs = Path("specs").resolve()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs").symlink_to(specs)
    script = "import modgraph\n" + "\n".join(line.removeprefix("    ") for line in code.splitlines())
    names: dict[str, object] = {"images": torch.rand(2, 1, 28, 28)}
    exec(compile(script, "README.md", "exec"), names)
    logits = names["logits"]
    assert isinstance(logits, torch.Tensor)
    assert logits.shape == (2, 10)
    assert names["program"].cost().parameters == 131_594  # type: ignore[attr-defined]


def test_no_merge_is_left_half_done() -> None:
    texts = [Path("README.md"), *Path("docs").glob("*.md"), *Path("specs").glob("*.*")]
    marks = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.M)
    assert [str(path) for path in texts if marks.search(path.read_text())] == []
