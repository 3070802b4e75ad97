"""Records of routers and their roles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """The meaning of a record. Its shape is [..., N, M], for N tokens and M modules, unless the text states another."""

    GATES = "the weight of each module's message"
    CHOICE = "one where a module is chosen, zero elsewhere and in padding"
    SLOTS = "one where a slot holds a module, zero elsewhere and in padding: [..., N, slots, M]"
    SCORES = "ranks modules, the larger the sooner"
    LOGITS = "their softmax is the distribution over modules"
    LOG_PROBABILITIES = "the logarithm of the distribution over modules"
    PROBABILITIES = "a distribution over all modules, before noise and choice"
    OTHER = "anything else, with any axes"
    NOVELTY = "how far the input is from what a module was made for; or [..., M], the same for all tokens"
    LOAD = "the probability of choosing a module, smooth in training"


ROLES = {role.name.lower(): role for role in Role}  # by the words of the language
CHOICES = (Role.CHOICE, Role.SLOTS)
DISTRIBUTION = (Role.LOGITS, Role.LOG_PROBABILITIES)
RANKING = (Role.SCORES, *DISTRIBUTION)


@dataclass(frozen=True)
class Record:
    """A value that a route records: its name for users, its axes, its role."""

    name: str
    axes: str
    role: Role


def record_as(records: Iterable[Record], *roles: Role) -> Record | None:
    """Find the record with the first of these roles that any record has."""
    known = [*records]
    return next((record for role in roles for record in known if record.role is role), None)
