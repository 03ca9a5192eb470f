"""Evaluation of answers to questions."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Any

from gpu.messages.lessons import AnswerMark, AskedQuestion

_RELATIVE_TOLERANCE = 1e-4
"""Relative tolerance of real numbers: they are shown with six digits."""


def mark(asked: AskedQuestion, given: Any) -> AnswerMark:
    """Compare an answer with the correct one.

    Parameters
    ----------
    asked : AskedQuestion
    given
        Value of the type that `AskedQuestion.form` requires; anything else is a wrong answer.
    """
    stop = "." * (not asked.why.endswith((".", "?", ")", "”")) and bool(asked.why))
    at = f"{stop} Line {asked.line}: {asked.source}" if asked.line and asked.source else ""
    if asked.form in ("cells", "threads"):
        return _mark_set(asked, given, at)
    if asked.form == "number":
        right = _is_number(given) and abs(given - asked.answer) <= _RELATIVE_TOLERANCE * max(1.0, abs(asked.answer)) * (
            isinstance(asked.answer, float)
        )
        # Explanations of a count begin with the number.
        correction = "" if asked.kind == "count" else f"it is {_number(asked.answer)}. "
    elif asked.form == "thread":
        right = isinstance(given, tuple | list) and tuple(given) == asked.answer
        correction = f"it is thread {asked.answer[1]} of block {asked.answer[0]}. "
    else:
        right, correction = given == asked.answer, f"the right answer is “{asked.answer}”. "
    words = f"Right. {asked.why}" if right else f"No: {correction}{asked.why}{at}"
    return AnswerMark(right, words.strip(), moment=asked.moment, line=asked.line)


def _mark_set(asked: AskedQuestion, given: Any, at: str) -> AnswerMark:
    try:
        chosen = frozenset(int(each) for each in given)
    except (TypeError, ValueError):
        chosen = frozenset()
    missing, extra = asked.answer - chosen, chosen - asked.answer
    if not missing and not extra:
        return AnswerMark(True, f"Right. {asked.why}", moment=asked.moment, line=asked.line)
    parts = []
    if missing:
        parts.append(f"you omitted {some(missing)}")
    if extra:
        parts.append(f"{some(extra)} {'does' if len(extra) == 1 else 'do'} not belong")
    return AnswerMark(False, f"No: {'; '.join(parts)}. {asked.why}{at}", missing, extra, asked.moment, asked.line)


def some(numbers: Collection[int]) -> str:
    """Format numbers: "3", "0, 2 and 4", "0 to 31", "0, 8, 16 … 248 (32 of them)", "0 to 5 and 7"; "none"."""
    ordered = sorted(numbers)
    if not ordered:
        return "none"
    steps = {after - before for before, after in pairwise(ordered)}
    if len(ordered) > 8 and len(steps) == 1 and steps != {1}:
        return f"{ordered[0]}, {ordered[1]}, {ordered[2]} … {ordered[-1]} ({len(ordered)} of them)"
    runs: list[list[int]] = []
    for number in ordered:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    parts = [part for run in runs for part in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
