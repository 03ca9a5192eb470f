"""What can be asked, and what each kind of question lets its author say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

AT_STATEMENT = ("active", "idle", "requests", "sectors", "passes", "conflicts", "operations")
"""What is counted of one statement."""
OVER_RUN = ("operations", "steps", "peak", "sectors", "conflicts", "barriers", "divergent")
"""What is counted of all launches."""


@dataclass(frozen=True)
class QuestionKind:
    """A kind of question.

    Parameters
    ----------
    says : str
        What it asks, in a line.
    options, needs : tuple of str
        What its author may say, and what must be said.
    choices : mapping
        What an option may be.
    """

    says: str
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


KINDS: dict[str, QuestionKind] = {
    "cells": QuestionKind(
        "which elements the next statement writes or reads",
        ("array", "of", "block"),
        ("array",),
        {"of": ("written", "read")},
    ),
    "lanes": QuestionKind("which threads of a block execute the next statement", ("block",)),
    "count": QuestionKind(
        "how many of something the next statement, or all launches, take",
        ("of", "over", "block"),
        ("of",),
        {"over": ("statement", "run"), "of": tuple(dict.fromkeys((*AT_STATEMENT, *OVER_RUN)))},
    ),
    "value": QuestionKind(
        "what an element will hold after the next statement, or at another place",
        ("array", "element", "block", "until"),
        ("array",),
    ),
    "writer": QuestionKind(
        "which thread has written an element by the end, or by another place",
        ("array", "element", "block", "until"),
        ("array",),
    ),
    "order": QuestionKind("whether another order of threads gives another result"),
    "mistake": QuestionKind("what the kernel does wrong"),
    "faster": QuestionKind("which of two is faster on a modeled GPU", ("with", "gpu", "n"), ("with",)),
    "bound": QuestionKind("what holds it back on a modeled GPU", ("gpu", "n")),
}
"""All kinds, by name."""
