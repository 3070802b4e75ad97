"""The inputs and outputs of a model, and their preparation by its data set: the same facts of a run and of a bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modgraph_runtime import Bundle, Port
from modgraph_runtime.ports import LENGTH, Inputs

from modgraph.ir import Graph, longest
from modgraph.ir.analysis.class_outputs import find_ranked_targets, list_probability_outputs
from modgraph.types import TensorType

GREY, COLOURS = "grey", "red, green, blue"


@dataclass(frozen=True)
class Facts:
    """Facts of a model.

    `inputs` and `outputs` are ports by name; `normalised` are outputs that are probabilities. `preprocessing` describes
    how each input is made, `words` has the words of its ids. `ignored` are names of arrays in a file that the model
    does not take. `longest` bounds axes of any length.
    """

    origin: str
    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    normalised: frozenset[str]
    preprocessing: Mapping[str, Any]
    words: Mapping[str, Sequence[str]]
    ignored: frozenset[str]
    longest: Mapping[str, int]

    @classmethod
    def from_graph(cls, graph: Graph, description: Mapping[str, Any], origin: str) -> Facts:
        """Collect the facts of a graph, and of the description of a run's data."""
        targets, types = find_ranked_targets(graph), graph.target_types
        given: Mapping[str, Sequence[str]] = description.get("classes", {})
        classes = {name: [*map(str, given.get(target, ()))][: types[target].size] for name, target in targets.items()}
        outputs = {name: graph.type_of(result) for name, result in graph.outputs.items()}
        return cls(
            origin,
            {name: _port(name, type_, {}) for name, type_ in graph.input_types.items()},
            {name: _port(name, each, classes, targets) for name, each in outputs.items() if each.per == "example"},
            list_probability_outputs(graph),
            description.get("preprocessing", {}),
            description.get("words", {}),
            frozenset(types),
            longest(graph),
        )

    @classmethod
    def from_bundle(cls, bundle: Bundle, graph: Graph) -> Facts:
        """Collect the facts of a bundle with the graph of its manifest."""
        return cls(
            f'the bundle "{bundle.path}"',
            bundle.inputs,
            bundle.outputs,
            list_probability_outputs(graph),
            bundle.manifest.get("preprocessing", {}),
            bundle.manifest.get("words", {}),
            bundle.targets | bundle.left_out,
            longest(graph),
        )

    @property
    def takes(self) -> str:
        """List the inputs in words."""
        return str(Inputs(self.inputs, self.longest))

    @property
    def needed(self) -> dict[str, Port]:
        """List the inputs without lengths, which may be omitted."""
        return {name: port for name, port in self.inputs.items() if port.dtype != LENGTH}

    def image_input(self) -> str | None:
        """Find the only input, if it is made from an image in a known way."""
        (name, port), *others = self.needed.items()
        how = self.preprocessing.get(name)
        is_image = port.dtype == "float" and len(port.shape) == 3 and all(isinstance(each, int) for each in port.shape)
        is_known = isinstance(how, Mapping) and how.get("channels") in (GREY, COLOURS)
        return name if is_image and is_known and not others else None

    def text_inputs(self) -> list[str]:
        """Find the inputs that are made from texts in a known way: sequences of ids."""
        known = {name: how for name, how in self.preprocessing.items() if isinstance(how, Mapping) and "split" in how}
        return [
            name
            for name, port in self.needed.items()
            if port.dtype == "token" and len(port.shape) == 1 and name in known and self.words.get(name)
        ]


def _port(name: str, type_: TensorType, classes: Mapping[str, Any], targets: Mapping[str, str] | None = None) -> Port:
    target = (targets or {}).get(name)
    entry = {**type_.as_json(), "name": name, "shape": [*type_.dimensions]}
    return Port.from_entry(entry | ({"target": target} if target is not None else {}), classes)
