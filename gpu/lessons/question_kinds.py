"""Kinds of questions, with the options that a lesson's author can set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STATEMENT_QUANTITIES = ("active", "idle", "requests", "sectors", "passes", "conflicts", "operations")
"""Quantities of one statement."""
RUN_QUANTITIES = ("operations", "steps", "peak", "sectors", "conflicts", "barriers", "divergent")
"""Quantities of all launches."""


@dataclass(frozen=True)
class QuestionKind:
    """A kind of question.

    Parameters
    ----------
    choices : mapping
        Allowed values of options.
    """

    summary: str
    optional_options: tuple[str, ...] = ()
    required_options: tuple[str, ...] = ()
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


QUESTION_KINDS: dict[str, QuestionKind] = {
    "cells": QuestionKind(
        "which elements the next statement writes or reads",
        ("array", "of", "block"),
        ("array",),
        {"of": ("written", "read")},
    ),
    "lanes": QuestionKind("which threads of a block execute the next statement", ("block",)),
    "count": QuestionKind(
        "how many of a quantity the next statement, or all launches, have",
        ("of", "over", "block"),
        ("of",),
        {"over": ("statement", "run"), "of": tuple(dict.fromkeys((*STATEMENT_QUANTITIES, *RUN_QUANTITIES)))},
    ),
    "value": QuestionKind(
        "the value of an element after the next statement, or at another place",
        ("array", "element", "block", "until"),
        ("array",),
    ),
    "writer": QuestionKind(
        "which thread last wrote an element by the end, or by another place",
        ("array", "element", "block", "until"),
        ("array",),
    ),
    "order": QuestionKind("whether another schedule gives another result"),
    "mistake": QuestionKind("what the kernel does wrong"),
    "faster": QuestionKind("which of two variants is faster on a modeled GPU", ("with", "gpu", "n"), ("with",)),
    "occupancy": QuestionKind("how many warps a multiprocessor of a GPU holds at once", ("gpu", "n")),
    "bound": QuestionKind("which resource limits the time on a modeled GPU", ("gpu", "n")),
}
"""All kinds of questions, by name."""
