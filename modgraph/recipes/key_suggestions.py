"""Suggests a key for an unknown one: the field's word for it, or the same key in another section."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping

from modgraph.declare import Configurable
from modgraph.diagnostics import closest, did_you_mean

Sections = Mapping[str, type[Configurable]]  # by dotted path
SYNONYMS = {
    "learning_rate": "lr",
    "wd": "weight_decay",
    "l2": "weight_decay",
    "batch_size": "batch",
    "max_epochs": "epochs",
    "num_epochs": "epochs",
    "n_epochs": "epochs",
    "optim": "optimizer",
    "lr_scheduler": "schedule",
    "scheduler": "schedule",
    "warmup_steps": "warmup",
    "early_stopping": "early_stop",
    "random_seed": "seed",
    "random_state": "seed",
    "max_grad_norm": "clip",
    "grad_clip": "clip",
    "gradient_clip_val": "clip",
    "validation_split": "validation",
    "val_split": "validation",
    "accelerator": "device",
    "num_threads": "threads",
    "dtype": "precision",
    "steps": "steps_per_epoch",
}


def suggest_key(key: str, known: Iterable[str], sections: Sections, otherwise: str = "keys are: {known}") -> str:
    """Return the help for an unknown key of a section with `known` keys; `sections` are those of the whole recipe."""
    names = list(known)
    word = SYNONYMS.get(key.lower(), key)
    if word in names:
        return f'did you mean "{word}"?'
    found = find_key(key, sections) if closest(key, names) is None else None
    return did_you_mean(key, names, otherwise) if found is None else f'did you mean "{found}"?'


def find_key(key: str, sections: Sections) -> str | None:
    """Return the dotted path of a key that is called so, or by the field's word for it; None if no section has it."""
    word = SYNONYMS.get(key.lower(), key)
    paths = (each for path, kind in sections.items() for each in _list_paths(kind, path))
    return next((each for each in paths if each.rpartition(".")[2] == word), None)


def find_reachable(path: str, sections: Sections) -> Sections:
    """Return the sections where a key that is unknown at a path may belong; none for a path inside of `data.of` and the
    like, whose keys have meanings of their own."""
    return sections if path.count(".") < 2 else {}


def _list_paths(kind: type[Configurable], path: str) -> Iterator[str]:
    """Yield the dotted path of each key of a section, then of those in it, of every kind of a section that has
    several."""
    hints = typing.get_type_hints(kind)
    yield from (f"{path}.{name}" for name in kind.settings())
    for name in kind.settings():
        options = typing.get_args(hints[name]) if isinstance(hints[name], types.UnionType) else (hints[name],)
        for option in options:
            if isinstance(option, type) and issubclass(option, Configurable):
                for each in (option, *getattr(option, "registry", {}).values()):
                    yield from _list_paths(each, f"{path}.{name}")
