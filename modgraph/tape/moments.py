"""How much memory a tape takes, at each moment of a forward and a backward pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from modgraph.tape.tape import Entry, Storage, Tape, Value


@dataclass(frozen=True)
class Moments:
    """Bytes besides weights and batch: what autograd keeps, and the most there is on the way there and back.

    `backward` includes the gradients of weights that are there by then, `gradients` has all of them.
    """

    kept: float
    forward: float
    backward: float
    gradients: float


def moments(tape: Tape, losses: Iterable[Value]) -> Moments:
    """What a tape takes if losses are differentiated."""
    needed = _needed(tape.entries, losses)
    kept = {storage for entry in needed for storage in entry.keeps if not storage.lasting}
    backward, gradients = _Backward(needed).run()
    return Moments(sum(each.size for each in kept), _forward(tape), backward, gradients)


def _needed(entries: Sequence[Entry], losses: Iterable[Value]) -> list[Entry]:
    """The entries that the losses depend on and that a gradient flows through, in order."""
    wanted, found = set(losses), []
    for entry in reversed(entries):
        if any(result in wanted and result.learns for result in entry.results):
            found.append(entry)
            wanted.update(entry.sources)
    return found[::-1]


def _forward(tape: Tape) -> float:
    """The most at once on the way there: what is kept, what is held, and what is still to be read."""
    last = {storage: at for at, entry in enumerate(tape.entries) for storage in _touched(entry)}
    stays = {storage for entry in tape.entries for storage in entry.keeps} | set(tape.held)
    ends: dict[int, list[Storage]] = {}
    for storage, at in last.items():
        if storage not in stays and not storage.lasting:
            ends.setdefault(at, []).append(storage)
    most = live = 0.0
    known: set[Storage] = set()
    for at, entry in enumerate(tape.entries):
        new = {entry.results[0].storage, *entry.keeps} - known
        known |= new
        live += sum(storage.size for storage in new if not storage.lasting)
        most = max(most, live)
        live -= sum(storage.size for storage in ends.get(at, ()))
    return most


def _touched(entry: Entry) -> set[Storage]:
    return {entry.results[0].storage, *(source.storage for source in entry.sources), *entry.keeps}


class _Backward:
    """The way back, entry by entry: gradients come and go, what was kept goes, those of weights stay."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.left = Counter(storage for entry in entries for storage in entry.keeps if not storage.lasting)
        self.live = sum(storage.size for storage in self.left)
        self.most = self.live
        self.of: dict[Value, Storage] = {}
        self.users: Counter[Storage] = Counter()
        self.gradients: dict[Storage, float] = {}

    def run(self) -> tuple[float, float]:
        for entry in reversed(self.entries):
            arrived = [self.of.pop(result) for result in entry.results if result in self.of]
            gradient = arrived[0] if arrived else self._new(entry.results[0].size)
            self.most = max(self.most, self.live + entry.works)
            for source in dict.fromkeys(entry.sources):
                if source.learns:
                    self._flow(source, entry, gradient)
            for each in arrived or [gradient]:
                self._release(each)
            for storage in entry.keeps:
                self._forget(storage)
        return self.most, sum(self.gradients.values())

    def _flow(self, source: Value, entry: Entry, gradient: Storage) -> None:
        """The gradient of a source: added to what it has, kept if it is a weight."""
        same = entry.passes and source.size == gradient.size
        new = self._share(gradient) if same else self._new(source.size)
        if source.is_weight:
            self._of_weight(source, new, same)
        elif source in self.of:
            before = self.of[source]
            if same:  # a sum of two takes a tensor of its own, unless one is nobody else's
                self.of[source] = self._new(source.size) if self.users[before] > 1 else self._share(before)
                self._release(before)
            self._release(new)
        else:
            self.of[source] = new

    def _of_weight(self, weight: Value, new: Storage, shared: bool) -> None:
        if weight.storage not in self.gradients:
            self.gradients[weight.storage] = weight.size
            self.live += weight.size if shared else 0
            self.users[new] += 0 if shared else 1
            self.most = max(self.most, self.live)
        self._release(new)

    def _new(self, size: float) -> Storage:
        storage = Storage(size)
        self.users[storage] = 1
        self.live += size
        self.most = max(self.most, self.live)
        return storage

    def _share(self, storage: Storage) -> Storage:
        self.users[storage] += 1
        return storage

    def _release(self, storage: Storage) -> None:
        self.users[storage] -= 1
        if self.users[storage] == 0:
            self.live -= storage.size

    def _forget(self, storage: Storage) -> None:
        if storage.lasting:
            return
        self.left[storage] -= 1
        if self.left[storage] == 0:
            self.live -= storage.size
