"""Statements that apply layers of images and sequences."""

from __future__ import annotations

from modgraph.types import floats
from tests.assault.programs.stages import settings_for, stages, written
from tests.assault.programs.writer import Writer, plain, written_type

IMAGES = "conv conv max_pool avg_pool batch_norm group_norm tokens patch_embed".split()
SEQUENCES = "lstm gru position class_token attention select modulated_linear max rms_norm last positions".split()


def on_images(writer: Writer) -> None:
    """A chain of the ops that work on images, and on the sequences that they become."""
    found = writer.value(lambda type_: len(type_.shape) == 3 and all(axis.size is not None for axis in type_.shape))
    if found is None:
        size = writer.rng.choice((4, 5, 6))
        type_ = floats(writer.rng.choice((2, 4)), size, size)
        found = writer.names.fresh("image"), type_
        writer.line(f"input {found[0]}: {written_type(type_)}")
        writer.values[found[0]] = type_
    source, type_ = found
    texts, type_ = stages(writer, type_, writer.rng.randint(1, 2), IMAGES)
    writer.bind(" -> ".join([source, *texts]), type_)


def on_sequences(writer: Writer) -> None:
    """A chain of ops over tokens: recurrent layers, positions, attention, one place."""
    if found := writer.value(lambda type_: 1 < len(type_.shape) < 4 and plain(type_)):
        source, type_ = found
        texts, type_ = stages(writer, type_, writer.rng.randint(1, 2), SEQUENCES)
        writer.bind(" -> ".join([source, *texts]), type_)


def attended(writer: Writer) -> None:
    """Attention to another value, perhaps under a mask."""
    found = writer.value(lambda type_: len(type_.shape) == 2 and plain(type_))
    if found is None:
        return
    source, type_ = found
    memory = writer.value(lambda other: len(other.shape) == 2 and plain(other)) or found
    operands = [source, memory[0]]
    if writer.chance(0.3) and memory[1].shape[0].size:
        operands.append(f"({memory[0]} -> mean(axis=-1)) > -0.3")
    settings = settings_for(writer, "attention", type_)
    writer.bind(f"({', '.join(operands)}) -> {written('attention', settings)}", type_)
