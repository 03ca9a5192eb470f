"""Evaluation of answers to questions."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Any

from gpu.messages.lessons import AnswerMark, RecordingQuestion

_RELATIVE_TOLERANCE = 1e-4
"""Relative tolerance of real numbers: they are shown with six digits."""


def mark_answer(question: RecordingQuestion, answer: Any) -> AnswerMark:
    """Compare an answer with the correct one.

    Parameters
    ----------
    answer
        Value of the type that `RecordingQuestion.form` requires; anything else is a wrong answer.
    """
    stop = "." * (not question.explanation.endswith((".", "?", ")", "”")) and bool(question.explanation))
    at = f"{stop} Line {question.line}: {question.source}" if question.line and question.source else ""
    if question.answer_type in ("cells", "threads"):
        return _mark_set(question, answer, at)
    if question.answer_type == "number":
        right = _is_number(answer) and abs(answer - question.answer) <= _RELATIVE_TOLERANCE * max(
            1.0, abs(question.answer)
        ) * (isinstance(question.answer, float))
        # Explanations of a count begin with the number.
        correction = "" if question.kind == "count" else f"it is {_format_number(question.answer)}. "
    elif question.answer_type == "thread":
        right = isinstance(answer, tuple | list) and tuple(answer) == question.answer
        correction = f"it is thread {question.answer[1]} of block {question.answer[0]}. "
    else:
        right, correction = answer == question.answer, f"the right answer is “{question.answer}”. "
    words = f"Right. {question.explanation}" if right else f"No: {correction}{question.explanation}{at}"
    return AnswerMark(right, words.strip(), moment=question.moment, line=question.line)


def _mark_set(question: RecordingQuestion, answer: Any, line_reference: str) -> AnswerMark:
    try:
        chosen = frozenset(int(each) for each in answer)
    except (TypeError, ValueError):
        chosen = frozenset()
    missing, extra = question.answer - chosen, chosen - question.answer
    if not missing and not extra:
        return AnswerMark(True, f"Right. {question.explanation}", moment=question.moment, line=question.line)
    parts = []
    if missing:
        parts.append(f"you omitted {format_numbers(missing)}")
    if extra:
        parts.append(f"{format_numbers(extra)} {'does' if len(extra) == 1 else 'do'} not belong")
    return AnswerMark(
        False,
        f"No: {'; '.join(parts)}. {question.explanation}{line_reference}",
        missing,
        extra,
        question.moment,
        question.line,
    )


def format_numbers(numbers: Collection[int]) -> str:
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


def _is_number(answer: Any) -> bool:
    return isinstance(answer, int | float) and not isinstance(answer, bool)


def _format_number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
