"""Values that rank classes: through ops that keep the largest value in place, and in losses of one's own."""

from __future__ import annotations

from modgraph.ir.graph import Graph
from modgraph.ir.node import LossNode, OpNode, Result
from modgraph.ops.along_axis import LogSoftmax, Softmax
from modgraph.ops.elementwise import Identity
from modgraph.ops.lookup import Lookup
from modgraph.types import TensorType, may_meet, shapes_meet


def keeps_largest(graph: Graph, result: Result) -> bool:
    """Whether an op keeps the place of the largest value along an operand's last axis."""
    node = graph[result.node]
    if not isinstance(node, OpNode) or not isinstance(node.op, Softmax | LogSoftmax | Identity):
        return False
    return isinstance(node.op, Identity) or bool(graph.signature(node).axes["position"] == -1)


def find_prediction(graph: Graph, target: str) -> Result | None:
    """Find the value that losses written as formulas compare with a label; None if there is none, or several.

    It is an output, or what an output ranks, with the axis of the label's classes. A loss must depend on it and on this
    label alone, and compute with both along that axis.
    """
    labelled = graph.descendants([target])
    labels = {name for name, type_ in graph.target_types.items() if type_.dtype == "class"}
    behind = {loss.name: graph.ancestors([loss.name]) for loss in graph.nodes_of(LossNode) if loss.name in labelled}
    read = set[str]().union(*(names for names in behind.values() if names & labels == {target}))
    found = set[Result]()
    for result in graph.outputs.values():
        while result.node not in read and keeps_largest(graph, result):
            (result,) = graph.inputs(result.node).values()
        if result.node in read - labelled and _ranks_classes(graph.type_of(result), graph.target_types[target]):
            found.add(result)
    (prediction,) = found if len(found) == 1 else (None,)
    return prediction if prediction and _meets_label(graph, prediction, read, labelled) else None


def _ranks_classes(type_: TensorType, label: TensorType) -> bool:
    """Whether a value has a number for each class, wherever there is a label."""
    assert label.classes is not None, "a target of classes"
    last = type_.shape[-1:]
    classes = bool(last) and last[0].size == label.size and may_meet(last[0], label.classes)
    return type_.dtype == "float" and classes and shapes_meet(type_.shape[:-1], label.shape)


def _meets_label(graph: Graph, prediction: Result, read: set[str], labelled: set[str]) -> bool:
    """Whether a node computes with numbers of the classes, of the prediction and of the label, or looks one up."""
    after = graph.descendants([prediction.node]) - labelled
    size = graph.type_of(prediction).shape[-1].size

    def meets(name: str) -> bool:
        of_classes = [each for each in graph.inputs(name).values() if size in _sizes(graph, each)]
        reads_row = isinstance(node := graph[name], OpNode) and isinstance(node.op, Lookup)
        by_class = any(each.node in labelled for each in of_classes)
        return any(each.node in after for each in of_classes) and (by_class or reads_row)

    return any(map(meets, sorted(read & labelled)))


def _sizes(graph: Graph, result: Result) -> set[int | None]:
    return {axis.size for axis in graph.type_of(result).shape}
