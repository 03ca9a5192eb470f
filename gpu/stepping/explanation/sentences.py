"""A statement with the values of one thread: `s[11] = 17 + 25 = 42`.

Operators and names are those of the statement as the simulator ran it; values are those that were recorded. If values
computed here differ from the recorded ones, as for a function's result, only the recorded effects are shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpu.recording.recording import Recording
from gpu.recording.statements import ExecutedStatement, Term
from gpu.stepping.explanation.expression_text import FormattedTerm, TermFormatter, format_source
from gpu.stepping.explanation.thread_event import ThreadEvent, format_value

_COMPUTATION = re.compile(r"(?<![\w.])[A-Za-z_]\w*|\s[-+*/%<>&|^]+\s")
_BRACES, _ROUND = str.maketrans("()", "{}"), str.maketrans("{}", "()")
_WARP_METHOD = re.compile(r"shfl|\.(any|all|ballot)|^__(any|all|ballot|match|reduce)")


@dataclass(frozen=True)
class Explanation:
    """The explanation of a thread's statement at a moment.

    Parameters
    ----------
    text : str
        The statement with values; "" if the thread does not execute it.
    variables : tuple of (str, str)
        The thread's variables and their values after the statement, in the order of declaration.
    call : str
        The function that the statement calls next; "" if the statement ends at this moment. The effects in `text`
        follow after the call.
    """

    text: str
    variables: tuple[tuple[str, str], ...] = ()
    call: str = ""


def explain(recording: Recording, moment: int, block: int, thread: int) -> Explanation:
    """Explain the event of a thread at a moment; at the end of the recording the explanation is empty.

    Parameters
    ----------
    block, thread : int
        The block's number in the grid and the thread's number in the block.

    Raises
    ------
    InputError
        The recording has no such moment.
    """
    launch, number = recording.locate_moment(moment)
    thread_event = ThreadEvent.from_trace(launch.trace, number, block, thread)
    if thread_event is None:
        return Explanation("")
    return Explanation(
        _explain_statement(thread_event, thread_event.event.statement, thread_event.event.kind),
        thread_event.variables,
        thread_event.call,
    )


def _explain_statement(thread_event: ThreadEvent, statement: ExecutedStatement, kind: str) -> str:
    match kind, statement.terms:
        case "barrier", _:
            return "__syncthreads(): waits"
        case "declare", terms:
            return _format_declaration(thread_event, statement, terms)
        case "return", ():
            return "return"
        case "return", (term,):
            return f"return {_append_result(TermFormatter(thread_event).format_assigned_value(term))}"
        case (("if" | "loop"), (term,)):
            return _format_condition(thread_event, term, statement.text or format_source(term))
        case "switch", (term,):
            formatted = TermFormatter(thread_event).format_term(term)
            parts = [statement.text or format_source(term), formatted.text, format_value(formatted.value)]
            return "  →  ".join(part for before, part in pairwise(["", *parts]) if part not in ("", before))
        case _, (term,):
            return _format_statement(thread_event, term, statement.text if kind == "evaluate" else "")
    return ""


def _append_result(formatted: FormattedTerm) -> str:
    value = format_value(formatted.value)
    return formatted.text if value in ("", formatted.text) else f"{formatted.text} = {value}"


def _format_condition(thread_event: ThreadEvent, term: Term, text: str) -> str:
    formatted, condition = TermFormatter(thread_event).format_term(term), thread_event.branch_taken
    truth = "" if condition is None else f" is {'true' if condition else 'false'}"
    if formatted.text in (text, truth.removeprefix(" is ")) or (
        formatted.value is not None and bool(formatted.value) != condition
    ):
        return f"{text}{truth}"
    return f"{text}  →  {formatted.text}{truth}"


def _format_declaration(thread_event: ThreadEvent, statement: ExecutedStatement, terms: Sequence[Term]) -> str:
    name, reading = statement.name, TermFormatter(thread_event)
    if not terms:
        return statement.type.replace("@", name)
    if len(terms) > 1:
        text = f"{name} = {{{', '.join(reading.format_assigned_value(term).text for term in terms)}}}"
        stored = format_value(thread_event.find_stored_value()).translate(_BRACES)
        return text if text.endswith(stored) else f"{text} = {stored}"
    place, formatted = reading.format_initialization(name, terms[0])
    if formatted.text == name:
        return statement.type.replace("@", name)  # a parameter in memory
    formatted = _restore_source_constant(formatted, terms[0], statement.text)
    result = (
        thread_event.find_written_value(name)
        if thread_event.find_written_value(name) is not None
        else thread_event.find_stored_value()
    )
    source = statement.text or format_source(terms[0])
    return _format_assignment(thread_event, terms[0], f"{place} = {source}", (place, formatted, result))


def _restore_source_constant(formatted: FormattedTerm, term: Term, text: str) -> FormattedTerm:
    """Return a constant as written in the source, if the source shows how its number is computed."""
    shows_computation = term.kind == "constant" and _COMPUTATION.search(text) is not None and "?" not in text
    return formatted._replace(text=text) if shows_computation else formatted


def _format_statement(thread_event: ThreadEvent, term: Term, text: str) -> str:
    parts, reading = _split_commas(term), TermFormatter(thread_event)
    if all(part.kind in ("assign", "update") for part in parts):
        text = text if len(parts) == 1 else ""
        texts = []
        for part in parts:
            place, formatted, result = reading.format_assignment(part)
            formatted = _restore_source_constant(formatted, part.parts[1], text) if part.kind == "assign" else formatted
            texts.append(_format_assignment(thread_event, part, format_source(part, text), (place, formatted, result)))
        return ", ".join(texts)
    rendered, effects = reading.format_term(term).text, thread_event.format_effects()
    return f"{rendered}: {effects}" if effects else rendered


def _split_commas(term: Term) -> list[Term]:
    return [*_split_commas(term.parts[0]), term.parts[1]] if term.kind == "comma" else [term]


def _format_assignment(
    thread_event: ThreadEvent, term: Term, text: str, assignment: tuple[str, FormattedTerm, Any]
) -> str:
    """Describe an assignment; `assignment` is the place, the computed value and the recorded value."""
    place, formatted, result = assignment
    if result is not None and formatted.value is not None and not _values_agree(result, formatted.value):
        effects = thread_event.format_effects()
        return f"{text}  →  {effects}" if effects else text
    result = formatted.value if result is None else result
    value = format_value(result)
    if _exchanges_lanes(term):
        bare = formatted.text == value or formatted.level == FormattedTerm("").level
        return f"{text}: {value if bare else f'{formatted.text} = {value}'}" if value else text
    is_shown = value == "" or f" = {formatted.text}".translate(_ROUND).endswith(f" = {value}")
    result_text = f"{place} = {formatted.text}" if is_shown else f"{place} = {formatted.text} = {value}"
    atomics = thread_event.format_effects(atomics_only=True)
    return f"{result_text}; {atomics}" if atomics else result_text


def _exchanges_lanes(term: Term) -> bool:
    """Return whether lanes exchange data in an expression."""
    is_exchange = term.kind == "warp" or (term.kind == "call" and _WARP_METHOD.search(term.text) is not None)
    return is_exchange or any(map(_exchanges_lanes, term.parts))


def _values_agree(result: Any, computed: Any) -> bool:
    """Return whether a computed value equals the recorded one, after conversion to its type."""
    if isinstance(result, tuple) or isinstance(computed, tuple):
        return format_value(result) == format_value(computed)
    with np.errstate(all="ignore"):
        converted = np.asarray(computed).astype(np.asarray(result).dtype)
    if np.asarray(result).dtype.kind == "f":
        return bool(np.isclose(converted, result, rtol=1e-5, equal_nan=True))
    return bool(converted == result)
