"""A statement with the values that one thread had: `s[11] = 17 + 25 = 42`.

What a statement was worth is recorded; how it came to that is read from its text. Where the two do not agree, or the
text is beyond what is read here, only what is recorded is told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpu.stepping.c_expression import Assign, Binary, Name, Node, UnreadableError, calls_in, parse
from gpu.stepping.reading import Reading
from gpu.stepping.recording import Recording
from gpu.stepping.scene import Scene, as_text
from gpu.stepping.statement_text import constants_of, statement_at

_WARP_FUNCTION = re.compile(r"__(shfl|reduce|ballot|any|all|match|activemask)|shfl|\.(any|all|ballot)")
_LEFT_SIDE = re.compile(r"(?<![=!<>+\-*/%&|^])=(?!=)")


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
    scene = Scene.of(launch.trace, number, block, thread)
    if scene is None:
        return Explanation("")
    event = scene.event
    text = recording.text(event.position.file) or launch.trace.source
    scene.constants = constants_of(text, launch.trace.data.launch.defines)
    statement = statement_at(text, event.position.line, event.position.column, event.kind)
    return Explanation(_explain(scene, statement, event.kind), scene.variables)


def variables(recording: Recording, moment: int, block: int, thread: int) -> tuple[tuple[str, str], ...]:
    """Return the variables of a thread and their values after the event at a moment, if it takes part in that."""
    return explain(recording, moment, block, thread).variables


def _explain(scene: Scene, statement: str, kind: str) -> str:
    match kind:
        case "barrier":
            return f"{statement or '__syncthreads()'}: waits"
        case "if" | "loop":
            return _condition(scene, statement)
        case "switch":
            return _worth(statement, *_read(scene, statement))
        case "return":
            value = statement.removeprefix("return").strip()
            if not value or not statement.startswith("return"):
                return "return"  # also where the end of a macro's or of a function's text is all that is known
            shown, worth = _read(scene, value)
            known = "" if worth is None or shown == as_text(worth) else f" = {as_text(worth)}"
            return f"return {shown}{known}"
        case "declare":
            return _declaration(scene, statement)
    return _statement(scene, statement)


def _read(scene: Scene, text: str) -> tuple[str, Any]:
    """Return an expression with its values, and what it is worth."""
    try:
        return Reading(scene).of(parse(text))
    except UnreadableError:
        return text, None


def _worth(text: str, shown: str, value: Any) -> str:
    known = as_text(value) if value is not None else ""
    parts = [text, *(part for part in (shown, known) if part)]
    return "  →  ".join(part for before, part in pairwise(["", *parts]) if part != before)


def _condition(scene: Scene, text: str) -> str:
    held = scene.taken
    truth = "" if held is None else f" is {'true' if held else 'false'}"
    if not text:
        return f"the condition{truth}"
    shown, value = _read(scene, text)
    if value is not None and held is not None and bool(value) != held:
        shown = text
    return f"{text}  →  {shown}{truth}" if shown not in (text, truth.removeprefix(" is ")) else f"{text}{truth}"


def _declaration(scene: Scene, text: str) -> str:
    sides = _LEFT_SIDE.split(text, maxsplit=1)
    names = re.findall(r"[A-Za-z_]\w*", sides[0].split("[")[0])
    if not names:
        return text
    name = names[-1]
    if len(sides) == 1:
        written = scene.written(name)
        constructed = re.search(r"[({].*[)}]$", text)
        return f"{name} = {as_text(written)}" if written is not None and constructed else text
    try:
        return _assignment(scene, Assign("=", Name(name), parse(sides[1])), f"{name} = {sides[1].strip()}")
    except UnreadableError:
        return _recorded(scene, text)


def _statement(scene: Scene, text: str) -> str:
    try:
        node = parse(text)
        parts = _parts_of(node)
        if all(isinstance(part, Assign) for part in parts):
            return ", ".join(_assignment(scene, part, text) for part in parts if isinstance(part, Assign))
        shown, _ = Reading(scene).of(node)
    except UnreadableError:
        return _recorded(scene, text)
    effects = scene.effects()
    return f"{shown}: {effects}" if effects else shown


def _parts_of(node: Node) -> list[Node]:
    """Return what commas separate."""
    return [*_parts_of(node.left), node.right] if isinstance(node, Binary) and node.op == "," else [node]


def _assignment(scene: Scene, node: Assign, text: str) -> str:
    reading = Reading(scene)
    place, shown, computed = reading.assignment(node)
    result = scene.written(place) if isinstance(node.place, Name) else scene.stored()
    if result is not None and computed is not None and not _agree(result, computed):
        return _recorded(scene, text)
    result = computed if result is None else result
    known = "" if result is None else as_text(result)
    if any(_WARP_FUNCTION.search(name) for name in calls_in(node)):
        bare = shown in (known, "") or (node.op == "=" and _WARP_FUNCTION.match(shown) is not None)
        told = known if bare else f"{shown} = {known}"
        return f"{text}: {told}"
    told = " = ".join(part for part in (place, shown) if part)
    if known and known != shown:
        told += f" = {known}"
    atomics = scene.effects(atomics_only=True)
    return f"{told}; {atomics}" if atomics else told


def _agree(result: Any, computed: Any) -> bool:
    """Whether what was computed here is what was recorded, in the type of that."""
    if isinstance(result, tuple) or isinstance(computed, tuple):
        return as_text(result) == as_text(computed)
    with np.errstate(all="ignore"):
        given = np.asarray(computed).astype(np.asarray(result).dtype)
    if np.asarray(result).dtype.kind == "f":
        return bool(np.isclose(given, result, rtol=1e-5, equal_nan=True))
    return bool(given == result)


def _recorded(scene: Scene, text: str) -> str:
    effects = scene.effects()
    return f"{text}  →  {effects}" if effects else text
