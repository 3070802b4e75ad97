"""Callbacks: objects of the user that are called at steps and epochs, and may stop the training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modgraph.diagnostics import did_you_mean


@dataclass(frozen=True)
class Step:
    """A finished step: its number and that of its epoch, both from 1, the losses by name (each a mean over the batch, a
    plain number), and the learning rate."""

    epoch: int
    step: int
    losses: Mapping[str, float]
    lr: float

    @property
    def loss(self) -> float:
        """The sum of the losses, which the step minimised."""
        return sum(self.losses.values())


@dataclass(frozen=True)
class Epoch:
    """A finished epoch: its number and that of its last step, both from 1, and the metrics by `split.metric`."""

    epoch: int
    step: int
    metrics: Mapping[str, float]


class Callback:
    """Base of callbacks; override any method. A method `on_…` of another name raises `TypeError` when training begins.

    A method that returns True stops the training after that step or epoch; the weights so far are kept and tested. With
    several processes the first one calls, and all stop together.
    """

    def on_begin(self, run: Any) -> None:
        """Called when a training begins or resumes, with its `Run`, whose folder exists."""

    def on_step(self, step: Step) -> bool | None:
        """Called after each step."""

    def on_epoch(self, epoch: Epoch) -> bool | None:
        """Called after each epoch, with its metrics."""

    def on_end(self, run: Any) -> None:
        """Called at the end of the training, with its `Run` and `metrics`."""


METHODS = ("on_begin", "on_step", "on_epoch", "on_end")
OF_OTHERS = {"batch": "step", "start": "begin", "finish": "end"}  # words of other libraries


def refuse_unknown_methods(callback: Any) -> None:
    """Raises `TypeError` for a method `on_…` that is never called, such as `on_epoch_end`."""
    names = (name for name in dir(callback) if name.startswith("on_") and name not in METHODS)
    unknown = next((name for name in names if callable(getattr(callback, name, None))), None)
    if unknown is None:
        return
    words = {OF_OTHERS.get(word, word) for word in unknown.split("_")}
    # `on_epoch_end` is rather `on_epoch` than `on_end`
    meant = next((name for name in ("on_step", "on_epoch", *METHODS) if words.issuperset(name.split("_"))), unknown)
    suggestion = did_you_mean(meant, METHODS, "")
    known = f"{suggestion} The methods of a callback are {', '.join(METHODS)}".strip()
    raise TypeError(f"{type(callback).__name__}.{unknown} is never called: {known}")


@dataclass(frozen=True)
class Watch:
    """The callbacks of a training. Raises `TypeError` for an object that is not a callback."""

    callbacks: Sequence[Any] = ()
    _methods: Mapping[str, Sequence[Callable[[Any], Any]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.callbacks, Sequence) or isinstance(self.callbacks, str):
            raise TypeError(f"callbacks must be a list, [callback], not {type(self.callbacks).__name__}")
        found: dict[str, list[Callable[[Any], Any]]] = {name: [] for name in METHODS}
        for each in self.callbacks:
            if not isinstance(each, type):
                refuse_unknown_methods(each)
            own = [name for name in METHODS if hasattr(each, name)]
            if isinstance(each, type) or not (own or callable(each)):
                what = f"the class {each.__name__}: call it" if isinstance(each, type) else f"a {type(each).__name__}"
                raise TypeError(
                    f"a callback has some of {', '.join(METHODS)}, or is a function of an epoch, not {what}"
                )
            for name in own:
                found[name].append(getattr(each, name))
            if not own:
                found["on_epoch"].append(each)
        object.__setattr__(self, "_methods", found)

    def hears(self, name: str) -> bool:
        """Whether any callback overrides this method."""
        return any(getattr(each, "__func__", each) is not getattr(Callback, name) for each in self._methods[name])

    def call(self, name: str, value: Any) -> bool:
        """Call a method of all callbacks; returns whether one of them stops the training."""
        return any([method(value) is True for method in self._methods[name]])
