"""What a step shows, recorded: the launches of a variant or of a lesson's own kernel, and the moment of a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from gpu.engines.tracing import TracingEngine
from gpu.errors import InputError, LaunchError, SourcePosition
from gpu.files.toml import shown
from gpu.lessons.lesson import Lesson, Place, Scene
from gpu.lessons.reading import plain_text
from gpu.lessons.stage import Stage
from gpu.messages.judgments import StageCase
from gpu.patterns import find_pattern
from gpu.run.execute import record
from gpu.schedules import ROUND_ROBIN
from gpu.stepping.phases import phases_of
from gpu.stepping.recording import Recording

MOST_ROUNDS = 3000
"""Rounds of loops after which a launch on so little counts as endless, on any machine."""


@dataclass(frozen=True, eq=False)
class PlayedScene:
    """A scene as it was recorded for one seed.

    Parameters
    ----------
    scene : Scene
    seed : int
    parameters : mapping
        Of a pattern its parameters, each one of its choices; of a kernel of the lesson's own `n`.
    file : str
        The name of the kernel file.
    recording : Recording
    moment : int
        Where the place is; 0 without one.
    """

    scene: Scene
    seed: int
    parameters: Mapping[str, Any]
    file: str
    recording: Recording
    moment: int


def chosen(scene: Scene, seed: int) -> dict[str, Any]:
    """Return a scene's parameters, each of those that are lists as one of these: the next seed has another choice."""
    found: dict[str, Any] = {"n": list(scene.sizes)} if scene.stage else dict(scene.parameters)
    for name, value in found.items():
        if isinstance(value, list) and value:
            seed, choice = divmod(seed, len(value))
            found[name] = value[choice]
    return found


def play(lesson: Lesson, scene: Scene, seed: int = 0, *, schedule: str = ROUND_ROBIN) -> PlayedScene:
    """Record a scene, and find its place.

    Raises
    ------
    InputError
        The pattern does not take the parameters, or there is no such place.
    KernelError
        A kernel does not compile, or is launched as no GPU would.
    """
    parameters = chosen(scene, seed)
    if scene.stage:
        stage = lesson.stage(scene.stage)
        file = stage.file
        case = StageCase(parameters["n"], seed=seed, schedule=schedule)
        recording = record_stage(stage, plain_text(lesson, scene.stage), case, shown=True)
    else:
        pattern = find_pattern(scene.pattern)
        variant = pattern.variant(scene.variant)
        file = pattern.file_of(variant.name)
        recording = record(
            pattern, variant, {}, with_defaults(scene, parameters), lambda progress: None, seed=seed, schedule=schedule
        )
    if recording.stopped:
        raise InputError("What is shown is too long to be recorded as a whole.", advice="Take fewer elements.")
    moment = 0 if scene.place is None else find_place(recording, scene.place, file, seed)
    return PlayedScene(scene, seed, parameters, file, recording, moment)


def with_defaults(scene: Scene, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters of a scene's pattern: those that it says, and the pattern's own for the others."""
    pattern = find_pattern(scene.pattern)
    return pattern.check(parameters)


def record_stage(stage: Stage, text: str, case: StageCase, *, shown: bool = False) -> Recording:
    """Record a lesson's kernel, with any text in the place of its file's; a mistake that ends it ends the recording.

    Raises
    ------
    InputError, KernelError
        As of `Stage.run`.
    """
    engine = TracingEngine(case.schedule, max_rounds=MOST_ROUNDS)
    engine.sources = {stage.file: text}
    failure = ""
    with closing(engine):
        before = stage.inputs(case, stage.types(engine.built(stage.file)), shown=shown)
        try:
            stage.run(engine, before, case.n)
        except LaunchError as error:
            if not engine.launched:
                raise
            failure = error.message
        return engine.recording(failure)


def find_place(recording: Recording, place: Place, file: str, seed: int = 0) -> int:
    """Return the moment of a place: just before its statement; InputError where the recording has none.

    Parameters
    ----------
    recording : Recording
    place : Place
    file : str
        The name of the kernel file.
    seed : int
        What chooses where the place leaves a choice.
    """
    if place.end:
        return recording.moments
    first, last = 0, recording.moments
    if place.launch:
        if place.launch > len(recording.launches):
            raise InputError(f"There are {len(recording.launches)} launches, and no launch {place.launch}.")
        launch = recording.launches[place.launch - 1]
        first, last = launch.first, launch.first + launch.count
    if place.phase:
        first, last = _phase(recording, place.phase, first, last)
    if place.barrier:
        first = _behind_barrier(recording, place.barrier, first, last)
    return _at_line(recording, place, file, first, last, seed) if place.line else first


def line_text(recording: Recording, file: str, line: int) -> str:
    """Return a line of a kernel's file, without its indent."""
    lines = recording.text(file).split("\n")
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def statement_text(recording: Recording, file: str, position: SourcePosition) -> str:
    """Return a line from a statement on: what stands before it in the line, a test or a loop, is another statement."""
    whole = line_text(recording, file, position.line)
    lines = recording.text(file).split("\n")
    if not whole or not position.column:
        return whole
    before, own = lines[position.line - 1][: position.column - 1], lines[position.line - 1][position.column - 1 :]
    return own.strip() if before.rstrip().endswith((")", "else", "{", ";")) else whole


def _phase(recording: Recording, name: str, first: int, last: int) -> tuple[int, int]:
    for stretch in phases_of(recording).stretches:
        if stretch.name == name and first <= stretch.first < last:
            return stretch.first, stretch.last
    names = dict.fromkeys(each.name for each in phases_of(recording).stretches if each.name)
    raise InputError(f"There is no phase {shown(name)} here; the phases: {', '.join(names) or 'none'}.")


def _behind_barrier(recording: Recording, wanted: int, first: int, last: int) -> int:
    kinds = recording.statements[1]
    found = [moment + 1 for moment in range(first, last) if kinds[moment] == "barrier"]
    if wanted > len(found):
        raise InputError(f"There are {len(found)} barriers here, and no barrier {wanted}.")
    return found[wanted - 1]


def _at_line(recording: Recording, place: Place, file: str, first: int, last: int, seed: int) -> int:
    positions = recording.statements[0]
    lines = recording.text(file).split("\n")
    wanted = place.line
    if isinstance(wanted, int) and not 1 <= wanted <= len(lines):
        raise InputError(f"{file} has {len(lines)} lines, and no line {wanted}.")
    meant = {wanted} if isinstance(wanted, int) else _lines_with(lines, wanted)
    own = [
        moment
        for moment in range(first, last)
        if positions[moment].line in meant and positions[moment].file == file and not _resumed(recording, moment)
    ]
    if not own:
        there = "is not executed here" if meant else f"does not stand in {file}"
        raise InputError(f"{f'Line {wanted}' if isinstance(wanted, int) else shown(wanted)} {there}.")
    if len(several := {positions[moment].line for moment in own}) > 1:
        where = ", ".join(map(str, sorted(several)))
        raise InputError(f"{shown(wanted)} stands in the lines {where} of {file}; say more of the one that is meant.")
    if isinstance(wanted, str):
        # Of several statements in a line the one that begins within what is said.
        begin = lines[several.pop() - 1].index(wanted) + 1
        within = range(begin, begin + len(wanted))
        own = [moment for moment in own if positions[moment].column in within] or own
    found = own
    time = place.time
    if isinstance(time, tuple):
        time = time[seed % len(time)]
    if not 1 <= abs(time) <= len(found):
        often = "once" if len(found) == 1 else f"{len(found)} times"
        raise InputError(f"{shown(wanted)} is executed {often} here, not {abs(time)} times.")
    return found[time - 1 if time > 0 else time]


def _lines_with(lines: Sequence[str], text: str) -> set[int]:
    """Return the numbers of the lines that have a text, not counting comments."""
    return {number for number, each in enumerate(lines, 1) if text in each.split("//")[0]}


def _resumed(recording: Recording, moment: int) -> bool:
    launch, event = recording.at(moment)
    return bool(launch.trace.data.events["resumed"][event])
