"""A statement with the values that one thread had: `s[11] = 17 + 25 = 42`.

Operators and names are those of the statement as the simulator ran it, values are those that were recorded. Where what
is worked out on the way does not lead to what was recorded, as of a function's result, only that is told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpu.simulator.trace.terms import ExecutedStatement, Term
from gpu.stepping.reading import Reading, Shown, as_written
from gpu.stepping.recording import Recording
from gpu.stepping.thread_event import ThreadEvent, as_text

_MADE = re.compile(r"(?<![\w.])[A-Za-z_]\w*|\s[-+*/%<>&|^]+\s")
_BRACES, _ROUND = str.maketrans("()", "{}"), str.maketrans("{}", "()")
_WARP_METHOD = re.compile(r"shfl|\.(any|all|ballot)|^__(any|all|ballot|match|reduce)")


@dataclass(frozen=True)
class Explanation:
    """What a thread does at a moment.

    Parameters
    ----------
    text : str
        The statement with values; "" where the thread does not take part.
    variables : tuple of (str, str)
        The thread's variables and their values after the statement, in the order in which they came to life.
    """

    text: str
    variables: tuple[tuple[str, str], ...] = ()


def explain(recording: Recording, moment: int, block: int, thread: int) -> Explanation:
    """Return what a thread does in the event at a moment; at the end of the recording nothing.

    Parameters
    ----------
    recording : Recording
    moment : int
    block, thread : int
        The block's number in the grid and the thread's in the block.

    Raises
    ------
    InputError
        There is no such moment.
    """
    launch, number = recording.at(moment)
    seen = ThreadEvent.of(launch.trace, number, block, thread)
    if seen is None:
        return Explanation("")
    return Explanation(_explain(seen, seen.event.statement, seen.event.kind), seen.variables)


def variables(recording: Recording, moment: int, block: int, thread: int) -> tuple[tuple[str, str], ...]:
    """Return the variables of a thread and their values after the event at a moment, if it takes part in that."""
    return explain(recording, moment, block, thread).variables


def _explain(seen: ThreadEvent, statement: ExecutedStatement, kind: str) -> str:
    match kind, statement.terms:
        case "barrier", _:
            return "__syncthreads(): waits"
        case "declare", terms:
            return _declaration(seen, statement, terms)
        case "return", ():
            return "return"
        case "return", (term,):
            return f"return {_with_result(Reading(seen).given(term))}"
        case (("if" | "loop"), (term,)):
            return _condition(seen, term, statement.text or as_written(term))
        case "switch", (term,):
            shown = Reading(seen).of(term)
            parts = [statement.text or as_written(term), shown.text, as_text(shown.value)]
            return "  →  ".join(part for before, part in pairwise(["", *parts]) if part not in ("", before))
        case _, (term,):
            return _statement(seen, term, statement.text if kind == "evaluate" else "")
    return ""


def _with_result(shown: Shown) -> str:
    known = as_text(shown.value)
    return shown.text if known in ("", shown.text) else f"{shown.text} = {known}"


def _condition(seen: ThreadEvent, term: Term, text: str) -> str:
    shown, held = Reading(seen).of(term), seen.taken
    truth = "" if held is None else f" is {'true' if held else 'false'}"
    if shown.text in (text, truth.removeprefix(" is ")) or (shown.value is not None and bool(shown.value) != held):
        return f"{text}{truth}"
    return f"{text}  →  {shown.text}{truth}"


def _declaration(seen: ThreadEvent, statement: ExecutedStatement, terms: Sequence[Term]) -> str:
    name, reading = statement.name, Reading(seen)
    if not terms:
        return statement.type.replace("@", name)
    if len(terms) > 1:
        told = f"{name} = {{{', '.join(reading.given(term).text for term in terms)}}}"
        stored = as_text(seen.stored()).translate(_BRACES)
        return told if told.endswith(stored) else f"{told} = {stored}"
    place, shown = reading.named(name, terms[0])
    if shown.text == name:
        return statement.type.replace("@", name)  # a parameter that is kept in memory
    shown = _in_full(shown, terms[0], statement.text)
    result = seen.written(name) if seen.written(name) is not None else seen.stored()
    written = statement.text or as_written(terms[0])
    return _got(seen, terms[0], f"{place} = {written}", (place, shown, result))


def _in_full(shown: Shown, term: Term, text: str) -> Shown:
    """Return a constant as the text has it, where that says how the number comes about."""
    says = term.kind == "constant" and _MADE.search(text) is not None and "?" not in text
    return shown._replace(text=text) if says else shown


def _statement(seen: ThreadEvent, term: Term, text: str) -> str:
    parts, reading = _parts_of(term), Reading(seen)
    if all(part.kind in ("assign", "update") for part in parts):
        text = text if len(parts) == 1 else ""
        told = []
        for part in parts:
            place, shown, result = reading.assignment(part)
            shown = _in_full(shown, part.parts[1], text) if part.kind == "assign" else shown
            told.append(_got(seen, part, as_written(part, text), (place, shown, result)))
        return ", ".join(told)
    only, effects = reading.of(term).text, seen.effects()
    return f"{only}: {effects}" if effects else only


def _parts_of(term: Term) -> list[Term]:
    """Return what commas separate."""
    return [*_parts_of(term.parts[0]), term.parts[1]] if term.kind == "comma" else [term]


def _got(seen: ThreadEvent, term: Term, text: str, got: tuple[str, Shown, Any]) -> str:
    """Tell of a place that got something; `got` is the place, what it should have got and what it did get."""
    place, shown, result = got
    if result is not None and shown.value is not None and not _agree(result, shown.value):
        effects = seen.effects()
        return f"{text}  →  {effects}" if effects else text
    result = shown.value if result is None else result
    known = as_text(result)
    if _asks_warp(term):
        bare = shown.text == known or shown.level == Shown("").level
        return f"{text}: {known if bare else f'{shown.text} = {known}'}" if known else text
    is_told = known == "" or f" = {shown.text}".translate(_ROUND).endswith(f" = {known}")
    told = f"{place} = {shown.text}" if is_told else f"{place} = {shown.text} = {known}"
    atomics = seen.effects(atomics_only=True)
    return f"{told}; {atomics}" if atomics else told


def _asks_warp(term: Term) -> bool:
    """Whether lanes exchange something in an expression."""
    own = term.kind == "warp" or (term.kind == "call" and _WARP_METHOD.search(term.text) is not None)
    return own or any(map(_asks_warp, term.parts))


def _agree(result: Any, computed: Any) -> bool:
    """Whether what was computed here is what was recorded, in the type of that."""
    if isinstance(result, tuple) or isinstance(computed, tuple):
        return as_text(result) == as_text(computed)
    with np.errstate(all="ignore"):
        given = np.asarray(computed).astype(np.asarray(result).dtype)
    if np.asarray(result).dtype.kind == "f":
        return bool(np.isclose(given, result, rtol=1e-5, equal_nan=True))
    return bool(given == result)
