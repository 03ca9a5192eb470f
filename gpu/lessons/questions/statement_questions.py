"""Questions about one statement: what it reads and writes, which threads execute it, and its memory traffic."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.base.warp import WARP
from gpu.lessons.expressions import evaluate_integer
from gpu.lessons.lesson import Place, Question
from gpu.lessons.question_kinds import RUN_QUANTITIES, STATEMENT_QUANTITIES
from gpu.lessons.questions.evaluation import format_numbers
from gpu.lessons.scenes import RecordedScene, find_place, statement_text
from gpu.messages.lessons import RecordingQuestion
from gpu.recording.arrays import TraceArray
from gpu.recording.recording import LaunchSpan
from gpu.stepping.explanation.sentences import explain
from gpu.stepping.moment.array_accesses import find_array_accesses
from gpu.stepping.moment.lanes import LaneStates
from gpu.stepping.moment.traffic import traffic_at
from gpu.stepping.tally import Tally

_STATEMENT_TEXTS = {
    "active": ("How many threads execute it?", "{} threads execute it."),
    "idle": (
        "How many lanes are idle in the warps that reach it? A warp has 32 lanes, even if the block has fewer threads.",
        "{} lanes are idle.",
    ),
    "requests": ("How many requests to global memory does it make, one per warp and access?", "{} requests."),
    "sectors": ("How many 32-byte sectors of global memory does it move?", "{} sectors are moved."),
    "passes": ("How many passes over the banks of shared memory does it take?", "{} passes."),
    "conflicts": ("How many passes are lost to bank conflicts?", "{} passes are lost to bank conflicts."),
    "operations": ("How many operations on data does it execute, by all threads?", "{} operations."),
}
_RUN_TEXTS = {
    "operations": ("How many operations on data are executed in total?", "{} operations in total."),
    "steps": (
        "How many steps run one after the other, if all threads that are ready run at the same time?",
        "{} steps one after the other.",
    ),
    "peak": ("How many operations run at the same time at most?", "{} operations in the widest step."),
    "sectors": ("How many 32-byte sectors of global memory are moved in total?", "{} sectors in total."),
    "conflicts": (
        "How many passes over shared memory are lost to bank conflicts in total?",
        "{} passes lost in total.",
    ),
    "barriers": ("How many barriers are passed, counted once per block?", "{} barriers are passed."),
    "divergent": ("How many times does a warp diverge at a branch?", "{} divergent branches."),
}
_SINGULAR = {
    "passes": "pass", "sectors": "sector", "requests": "request", "threads": "thread", "lanes": "lane",
    "operations": "operation", "barriers": "barrier", "steps": "step", "branches": "branch", "are": "is",
    "execute": "executes",
}  # fmt: skip
_QUANTITY_FIELDS = {"conflicts": "bank_conflicts", "divergent": "divergent_branches"}


def ask_cells(recorded_scene: RecordedScene, question: Question) -> RecordingQuestion:
    """Ask which elements of an array a statement writes or reads."""
    launch, event = _find_statement(recorded_scene)
    name, block = question.options["array"], question.options.get("block", 0)
    writes = question.options.get("of", "written") == "written"
    array = _find_array(launch, name, block)
    number = array.number
    elements: set[int] = set()
    for access in find_array_accesses(launch.trace, event):
        if access.array_number == number and access.is_write == writes:
            elements.update(int(element) for element in access.elements)
    if not elements:
        raise InputError(f"The statement does not {'write' if writes else 'read'} {name}.")
    position = launch.trace.events[event].position
    line = position.line
    verb = "write" if writes else "read"
    where = f" of block {block}" if launch.trace.arrays[number].space == "shared" else ""
    source = statement_text(recorded_scene.recording, recorded_scene.file, position)
    return RecordingQuestion(
        "cells",
        f"Which elements of {name}{where} does line {line} {verb} now: {source}",
        "cells",
        frozenset(elements),
        f"It {verb}s {format_numbers(elements)}.",
        array=name,
        block=block,
        moment=recorded_scene.moment,
        line=line,
        source=source,
        size=array.count,
    )


def ask_lanes(recorded_scene: RecordedScene, question: Question) -> RecordingQuestion:
    """Ask which threads of a block execute a statement."""
    launch, event = _find_statement(recorded_scene)
    block = question.options.get("block", 0)
    statement = launch.trace.events[event]
    threads = frozenset(int(thread) for thread in statement.threads[statement.blocks == block])
    line = statement.position.line
    source = statement_text(recorded_scene.recording, recorded_scene.file, statement.position)
    summary = LaneStates(recorded_scene.recording).lanes_at(recorded_scene.moment).summary(block)
    return RecordingQuestion(
        "lanes",
        f"Which threads of block {block} execute line {line} now: {source}",
        "threads",
        threads,
        f"{_format_executing_threads(threads)}. Lanes of the block's warps: {summary}.",
        block=block,
        moment=recorded_scene.moment,
        line=line,
        source=source,
        size=prod(launch.trace.block),
    )


def ask_count(recorded_scene: RecordedScene, question: Question) -> RecordingQuestion:
    """Ask for a quantity of a statement, or of all launches."""
    quantity = question.options["of"]
    if question.options.get("over", "statement") == "run":
        if quantity not in RUN_QUANTITIES:
            raise InputError(
                f"{quantity!r} is counted per statement; available for a run: {', '.join(RUN_QUANTITIES)}."
            )
        counts = Tally(recorded_scene.recording).counts_at(recorded_scene.recording.event_count)
        answer = int(getattr(counts, _QUANTITY_FIELDS.get(quantity, quantity)))
        prompt, why = _RUN_TEXTS[quantity]
        return RecordingQuestion(
            "count", prompt, "number", answer, _format_count(why, answer), moment=recorded_scene.recording.event_count
        )  # fmt: skip
    if quantity not in STATEMENT_QUANTITIES:
        available = ", ".join(STATEMENT_QUANTITIES)
        raise InputError(f'{quantity!r} is counted per run (over = "run"); available for a statement: {available}.')
    launch, event = _find_statement(recorded_scene)
    statement = launch.trace.events[event]
    answer = _count_at_statement(recorded_scene, quantity)
    line = statement.position.line
    source = statement_text(recorded_scene.recording, recorded_scene.file, statement.position)
    prompt, why = _STATEMENT_TEXTS[quantity]
    return RecordingQuestion(
        "count",
        f"{_describe_next_statement(recorded_scene)} {prompt}",
        "number",
        answer,
        _format_count(why, answer),
        moment=recorded_scene.moment,
        line=line,
        source=source,
    )


def ask_value(recorded_scene: RecordedScene, question: Question) -> RecordingQuestion:
    """Ask for an element's value after a statement, or at a later place."""
    name, block = question.options["array"], question.options.get("block", 0)
    until = _find_until_moment(recorded_scene, question, recorded_scene.moment + 1)
    launch, step = _find_launch_before(recorded_scene, until)
    array = _find_array(launch, name, block)
    candidates = np.flatnonzero(launch.trace.memory.find_written(array, step))
    if until == recorded_scene.moment + 1:
        _, event = _find_statement(recorded_scene)
        writes = [
            array_access
            for array_access in find_array_accesses(launch.trace, event)
            if array_access.array_number == array.number and array_access.is_write
        ]
        candidates = np.unique(np.concatenate([access.elements for access in writes])) if writes else candidates
    element = _choose_element(question, candidates, array, recorded_scene)
    element_value = launch.trace.array(array.number, step)[element]
    write = launch.trace.memory.find_writer(array, element, step)
    line, source, why = 0, "", "No thread writes it."
    element_name = f"{name}[{element}]{f' of block {block}' if array.space == 'shared' else ''}"
    if write is not None:
        moment = launch.first + write.event
        position = launch.trace.events[write.event].position
        line, source = position.line, statement_text(recorded_scene.recording, recorded_scene.file, position)
        text = explain(recorded_scene.recording, moment, write.block, write.thread).text
        why = f"Block {write.block}, thread {write.thread}: {text}." if text else f"Thread {write.thread} writes it."
    answer: int | float = float(element_value) if np.asarray(element_value).dtype.kind == "f" else int(element_value)
    return RecordingQuestion(
        "value",
        f"What is {element_name} {_describe_place(recorded_scene, question, until)}?"
        if "until" in question.options
        else f"{_describe_next_statement(recorded_scene)} What is {element_name} after it?",
        "number",
        answer,
        why,
        array=name,
        block=block,
        moment=until,
        line=line,
        source=source,
    )


def ask_writer(recorded_scene: RecordedScene, question: Question) -> RecordingQuestion:
    """Ask which thread wrote an element last before a place, or the end."""
    name, block = question.options["array"], question.options.get("block", 0)
    until = _find_until_moment(recorded_scene, question, recorded_scene.recording.event_count)
    launch, step = _find_launch_before(recorded_scene, until)
    array = _find_array(launch, name, block)
    element = _choose_element(
        question, np.flatnonzero(launch.trace.memory.find_written(array, step)), array, recorded_scene
    )
    write = launch.trace.memory.find_writer(array, element, step)
    if write is None:
        raise InputError(f"No thread writes {name}[{element}].")
    position = launch.trace.events[write.event].position
    moment = launch.first + write.event
    text = explain(recorded_scene.recording, moment, write.block, write.thread).text
    where = f" of block {block}" if array.space == "shared" else ""
    prompt = f"which thread was the last to write {name}[{element}]{where}?"
    if until < recorded_scene.recording.event_count:
        prompt = f"{_describe_place(recorded_scene, question, until)}, {prompt}"
    return RecordingQuestion(
        "writer",
        prompt[:1].upper() + prompt[1:],
        "thread",
        (write.block, write.thread),
        f"{text}." if text else "",
        array=name,
        block=block,
        moment=moment,
        line=position.line,
        source=statement_text(recorded_scene.recording, recorded_scene.file, position),
    )


def _count_at_statement(recorded_scene: RecordedScene, quantity: str) -> int:
    launch, event = _find_statement(recorded_scene)
    statement = launch.trace.events[event]
    if quantity == "active":
        return int(statement.lanes.size)
    if quantity == "idle":
        warps = np.unique(np.stack((statement.blocks, statement.threads // WARP)), axis=1).shape[1]
        return int(warps * WARP - statement.lanes.size)
    if quantity == "operations":
        return int(launch.trace.data.events["work"][event])
    traffic = traffic_at(recorded_scene.recording, recorded_scene.moment)
    if quantity == "requests":
        return sum(access.counts.requests for access in traffic.accesses if access.space == "global")
    if quantity == "passes":
        return sum(access.counts.wavefronts for access in traffic.accesses if access.space == "shared")
    return int(getattr(traffic, quantity))


def _find_statement(recorded_scene: RecordedScene) -> tuple[LaunchSpan, int]:
    if recorded_scene.moment >= recorded_scene.recording.event_count:
        raise InputError("At the end of a recording there is no next statement for a question.")
    return recorded_scene.recording.locate_moment(recorded_scene.moment)


def _format_count(explanation: str, answer: int) -> str:
    """Format a sentence that begins with a number; use the singular for 1."""
    words = explanation.format(answer).split(" ")
    if answer != 1:
        return " ".join(words)
    return " ".join(
        _SINGULAR.get(word.rstrip("."), word.rstrip(".")) + "." * word.endswith(".") if number < 3 else word
        for number, word in enumerate(words)
    )


def _describe_next_statement(recorded_scene: RecordedScene) -> str:
    launch, event = _find_statement(recorded_scene)
    position = launch.trace.events[event].position
    return f"Line {position.line} is next: {statement_text(recorded_scene.recording, recorded_scene.file, position)}"


def _format_executing_threads(threads: frozenset[int]) -> str:
    return f"{format_numbers(threads).capitalize()} {'executes' if len(threads) == 1 else 'execute'} it"


def _find_until_moment(recorded_scene: RecordedScene, question: Question, default: int) -> int:
    place = question.options.get("until")
    return (
        default
        if place is None
        else find_place(recorded_scene.recording, place, recorded_scene.file, recorded_scene.seed)
    )


def _find_launch_before(recorded_scene: RecordedScene, moment: int) -> tuple[LaunchSpan, int]:
    """Return the launch with the last event before a moment, and the number of its events before the moment."""
    launch, _ = recorded_scene.recording.locate_moment(max(moment - 1, 0))
    return launch, moment - launch.first


def _describe_place(recorded_scene: RecordedScene, question: Question, until_moment: int) -> str:
    place: Place | None = question.options.get("until")
    if place is None or place.end or until_moment >= recorded_scene.recording.event_count:
        return "at the end"
    if place.line:
        return f"when line {recorded_scene.recording.statements[0][until_moment].line} is next"
    if place.phase:
        return f"when the phase {place.phase!r} begins"
    if place.barrier:
        return f"after barrier {place.barrier}"
    return f"when launch {place.launch} begins"


def _find_array(launch: LaunchSpan, name: str, block: int) -> TraceArray:
    for array in launch.trace.arrays:
        if array.name == name and array.block in (None, block):
            return array
    names = ", ".join(dict.fromkeys(array.name for array in launch.trace.arrays))
    raise InputError(f"The launch has no array {name!r} in block {block}; it has {names}.")


def _choose_element(question: Question, candidates: Any, array: TraceArray, recorded_scene: RecordedScene) -> int:
    if "element" in question.options:
        element = evaluate_integer(question.options["element"], recorded_scene.parameters)
        if not 0 <= element < array.count:
            raise InputError(f"{array.name} has {array.count} elements; there is no element {element}.")
        return element
    if not candidates.size:
        raise InputError(f"Nothing is written to {array.name} before that place.")
    return int(candidates[int(np.random.default_rng([recorded_scene.seed, 3]).integers(candidates.size))])
