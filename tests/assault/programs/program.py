"""Program number n: inputs, statements of every kind, and outputs and losses of what they bound."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

import modgraph
from modgraph.types import TensorType, floats
from tests.assault.programs.arrays import a_rule, an_array, derived, remembered, used
from tests.assault.programs.layers import attended, on_images, on_sequences
from tests.assault.programs.loops import a_block, a_branch, a_repeat, rounds
from tests.assault.programs.names import Names
from tests.assault.programs.routes import a_capacity, a_route, by_weights
from tests.assault.programs.scans import a_loop, a_scan, shared_in_scan
from tests.assault.programs.text import Tree
from tests.assault.programs.values import (
    a_chain,
    a_module,
    a_residual,
    an_input,
    arithmetic,
    several,
    side_by_side,
)
from tests.assault.programs.writer import Writer, plain, target_type, width

STATEMENTS = (
    *(
        a_chain,
        a_chain,
        a_residual,
        arithmetic,
        arithmetic,
        several,
        several,
        several,
        side_by_side,
        a_module,
        attended,
    ),
    *(on_images, on_sequences, on_sequences),
    *(an_array, an_array, derived, used, a_rule, remembered, a_route, a_route, by_weights, by_weights, a_capacity),
    *(
        a_repeat,
        a_repeat,
        rounds,
        a_branch,
        a_block,
        a_scan,
        a_scan,
        a_scan,
        shared_in_scan,
        a_loop,
        a_route,
        by_weights,
    ),
)
ODD = (0.0, 0.0, 0.0, 0.4)  # how often names mean something else in Python or torch, by turns


@dataclass(frozen=True)
class Written:
    """A program: its statements, its text, and what modgraph reads in it."""

    tree: Tree
    text: str
    program: modgraph.Program


def program(n: int) -> Written:
    """Program number n. What modgraph refuses is left out while it is written; what is left, it takes."""
    rng = Random(n)
    while True:
        writer = Writer(rng, Names(rng, ODD[n % len(ODD)]))
        writer.tree.name = writer.names.fresh("m")
        for _ in range(rng.randint(1, 3)):
            an_input(writer)
        for _ in range(rng.randint(2, 3)):
            for _ in range(rng.randint(1, 5)):
                rng.choice(STATEMENTS)(writer)
            if writer.settle() is None:
                break
        else:
            _ends(writer)
            found = writer.tree.pruned(())
            if found is not None and found.ir.outputs:
                return Written(writer.tree, writer.tree.text(), found)


def _ends(writer: Writer) -> None:
    """Outputs of all that nothing reads, and of some other values; losses."""
    rng, text = writer.rng, writer.tree.text()
    words = re.findall(r"\w+", text)
    values = {name: type_ for name, type_ in writer.values.items() if type_.per == "example"}
    unread = [name for name in values if words.count(name) == 1]
    others = rng.sample(list(values), min(len(values), 2))
    for name in dict.fromkeys([*unread[-6:], *others]):
        writer.line(f"output {name}" if writer.chance(0.7) else f"output {writer.names.fresh('out')} = {name}")
    for name, ops in writer.routers.items():
        for op in ops:
            if writer.chance(0.4):
                writer.line(f"loss {rng.choice(('0.5 *', '2 *'))} {op}({name})")
    for name, type_ in rng.sample(list(values.items()), min(len(values), 3)):
        if writer.chance(0.6):
            _loss(writer, name, type_)


def _loss(writer: Writer, name: str, type_: TensorType) -> None:
    """A loss of a value and a target, with weights and targets that may be missing, or of the value alone."""
    rng, target = writer.rng, writer.names.fresh("t")
    kind = rng.random()
    loss, factor = writer.names.fresh("l"), rng.choice(("", "", "0.3 * "))
    missing = ", missing=true" if writer.chance(0.2) else ""
    if plain(type_) and kind < 0.35:
        label = TensorType("class", type_.shape[:-1], size=width(type_))
        options = rng.choice(("", ", ignore=1", ', reduce="sum"', missing, f", class_weights={[1.5] * width(type_)}"))
        writer.line(f"target {target}: {target_type(writer, label)}")
        writer.line(f"loss {loss} = {factor}cross_entropy({name}, {target}{options})")
    elif plain(type_) and kind < 0.55:
        writer.line(f"target {target}: {target_type(writer, type_)}")
        reduce = rng.choice(("", ', reduce="sum"'))
        writer.line(f"loss {loss} = {factor}gaussian({name}, {target}, variance=0.5{reduce}{missing})")
    elif kind < 0.8:
        writer.line(f"target {target}: {target_type(writer, type_)}")
        writer.line(f"loss {loss} = {factor}mse({name}, {target}{missing})")
    elif plain(type_) and kind < 0.9:
        writer.line(f"loss {loss} = {factor}entropy({name})")
    else:
        reduced = " -> ".join([f"{name} ** 2", *["mean(axis=-1)"] * len(floats(*type_.shape).shape)])
        writer.line(f"loss {loss} = {factor}({reduced})")
