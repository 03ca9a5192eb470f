"""Recordings of lesson scenes: run a variant or a lesson's kernel, and find a place's moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from gpu.base.errors import InputError, LaunchError, SourcePosition
from gpu.base.schedules import Schedule
from gpu.engines.tracing_engine import TracingEngine
from gpu.files.toml import format_value
from gpu.lessons.lesson import Lesson, Place, Scene
from gpu.lessons.lesson_reader import plain_text
from gpu.lessons.stage import Stage
from gpu.messages.judgments import GradingCase
from gpu.patterns import find_pattern
from gpu.recording.recording import Recording
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.simulator.executor.scheduling.choosers import Chooser, LateChooser
from gpu.stepping.phases import find_phases

MAX_LOOP_ITERATIONS = 6000
"""Loop-iteration limit of a recorded or graded launch; it makes endless loops reproducible on any machine."""


@dataclass(frozen=True, eq=False)
class RecordedScene:
    """Recording of a scene for one seed.

    Parameters
    ----------
    parameters : mapping
        The pattern's parameters after selection; `n` for a kernel of the lesson.
    file : str
        Name of the kernel file.
    moment : int
        Moment of the scene's place; 0 without one.
    """

    scene: Scene
    seed: int
    parameters: Mapping[str, Any]
    file: str
    recording: Recording
    moment: int


def choose_parameters(scene: Scene, seed: int) -> dict[str, Any]:
    """Return a scene's parameters; from each list the seed selects a value, so that consecutive seeds differ."""
    parameters: dict[str, Any] = {"n": list(scene.sizes)} if scene.stage else dict(scene.parameters)
    for name, value in parameters.items():
        if isinstance(value, list) and value:
            seed, choice = divmod(seed, len(value))
            parameters[name] = value[choice]
    return parameters


def record_scene(lesson: Lesson, scene: Scene, seed: int = 0) -> RecordedScene:
    """Record a scene and find the moment of its place.

    Parameters
    ----------
    lesson : Lesson
        The lesson, which has the kernel files of its stages.
    seed : int
        Selects the parameters, as of `choose_parameters`, and the random inputs.

    Raises
    ------
    InputError
        If the pattern does not accept the parameters, the scene is too long, or there is no such place.
    KernelError
        If a kernel does not compile, or its launch is invalid.
    """
    parameters = choose_parameters(scene, seed)
    if scene.stage:
        stage = lesson.stage(scene.stage)
        file = stage.file
        case = GradingCase(parameters["n"], seed=seed)
        recording = record_stage(stage, plain_text(lesson, scene.stage), case, for_display=True)
    else:
        pattern = find_pattern(scene.pattern)
        variant = pattern.variant(scene.variant)
        file = pattern.kernel_file_of(variant.name)
        recording = record_pattern(
            Workload(pattern, variant, {}, complete_parameters(scene, parameters), seed=seed),
            lambda progress: None,
        )
    if recording.stopped:
        raise InputError("The scene is too long to be recorded.", advice="Use fewer elements.")
    moment = 0 if scene.place is None else find_place(recording, scene.place, file, seed)
    return RecordedScene(scene, seed, parameters, file, recording, moment)


def complete_parameters(scene: Scene, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scene's parameters completed by the pattern's defaults."""
    pattern = find_pattern(scene.pattern)
    return pattern.check(parameters)


def create_chooser(case: GradingCase) -> Chooser | None:
    """Return what chooses the next warp in place of a case's schedule: with shuffled warps, waits last long."""
    schedule = Schedule.parse(case.schedule)
    return LateChooser(schedule.seed) if schedule.kind.name == "shuffle" else None


def record_stage(stage: Stage, text: str, case: GradingCase, *, for_display: bool = False) -> Recording:
    """Record a lesson's kernel with the given text; a mistake that ends the run ends the recording.

    Parameters
    ----------
    stage : Stage
        The kernel file's launches and arrays.
    text : str
        The complete text of the kernel file.
    case : GradingCase
        The input and the schedule.
    for_display : bool
        Whether to generate small positive numbers, which are easy to read.

    Raises
    ------
    InputError, KernelError
        As of `Stage.run`.
    """
    order = create_chooser(case) or case.schedule
    engine = TracingEngine(order, max_rounds=MAX_LOOP_ITERATIONS, is_descending=case.is_descending)
    engine.sources = {stage.file: text}
    failure = ""
    with closing(engine):
        before = stage.generate_inputs(
            case, stage.find_types(engine.build_simulated_module(stage.file)), for_display=for_display
        )
        try:
            stage.run(engine, before, case)
        except LaunchError as error:
            if not engine.has_launches:
                raise
            failure = error.message
        return engine.build_recording(failure)


def find_place(recording: Recording, place: Place, file: str, seed: int = 0) -> int:
    """Return the moment just before a place's statement; raise InputError if the recording has no such place.

    Parameters
    ----------
    file : str
        Name of the kernel file.
    seed : int
        Selects one of several times.
    """
    if place.end:
        return recording.event_count
    first, last = 0, recording.event_count
    if place.launch:
        if place.launch > len(recording.launches):
            raise InputError(f"There are {len(recording.launches)} launches; there is no launch {place.launch}.")
        launch = recording.launches[place.launch - 1]
        first, last = launch.first, launch.first + launch.count
    if place.phase:
        first, last = _find_phase(recording, place.phase, first, last)
    if place.barrier:
        first = _find_barrier(recording, place.barrier, first, last)
    return _find_line(recording, place, file, first, last, seed) if place.line else first


def line_text(recording: Recording, file: str, line: int) -> str:
    """Return a line of a kernel's file, stripped."""
    lines = recording.text(file).split("\n")
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def statement_text(recording: Recording, file: str, position: SourcePosition) -> str:
    """Return a line's text from a statement on; text before it, such as a test or loop, is another statement."""
    line = line_text(recording, file, position.line)
    lines = recording.text(file).split("\n")
    if not line or not position.column:
        return line
    before, own = lines[position.line - 1][: position.column - 1], lines[position.line - 1][position.column - 1 :]
    return own.strip() if before.rstrip().endswith((")", "else", "{", ";")) else line


def _find_phase(recording: Recording, name: str, first: int, last: int) -> tuple[int, int]:
    for stretch in find_phases(recording).intervals:
        if stretch.name == name and first <= stretch.first < last:
            return stretch.first, stretch.last
    names = dict.fromkeys(interval.name for interval in find_phases(recording).intervals if interval.name)
    raise InputError(f"There is no phase {format_value(name)} here; available: {', '.join(names) or 'none'}.")


def _find_barrier(recording: Recording, number: int, first: int, last: int) -> int:
    kinds = recording.statements[1]
    moments = [moment + 1 for moment in range(first, last) if kinds[moment] == "barrier"]
    if number > len(moments):
        raise InputError(f"There are {len(moments)} barriers here; there is no barrier {number}.")
    return moments[number - 1]


def _find_line(recording: Recording, place: Place, file: str, first: int, last: int, seed: int) -> int:
    positions = recording.statements[0]
    lines = recording.text(file).split("\n")
    line = place.line
    if isinstance(line, int) and not 1 <= line <= len(lines):
        raise InputError(f"{file} has {len(lines)} lines; there is no line {line}.")
    numbers = {line} if isinstance(line, int) else _find_lines(lines, line)
    moments = [
        moment
        for moment in range(first, last)
        if positions[moment].line in numbers and positions[moment].file == file and not _is_resumed(recording, moment)
    ]
    if not moments:
        problem = "is not executed here" if numbers else f"is not in {file}"
        raise InputError(f"{f'Line {line}' if isinstance(line, int) else format_value(line)} {problem}.")
    if len(executed := {positions[moment].line for moment in moments}) > 1:
        where = ", ".join(map(str, sorted(executed)))
        raise InputError(f"{format_value(line)} is in the lines {where} of {file}; use a longer part of the line.")
    if isinstance(line, str):
        # Of several statements in the line, use the one that begins inside the given text.
        begin = lines[executed.pop() - 1].index(line) + 1
        columns = range(begin, begin + len(line))
        moments = [moment for moment in moments if positions[moment].column in columns] or moments
    time = place.time
    if isinstance(time, tuple):
        time = time[seed % len(time)]
    if not 1 <= abs(time) <= len(moments):
        count = "once" if len(moments) == 1 else f"{len(moments)} times"
        raise InputError(f"{format_value(line)} is executed {count} here, not {abs(time)} times.")
    return moments[time - 1 if time > 0 else time]


def _find_lines(lines: Sequence[str], text: str) -> set[int]:
    """Return the numbers of the lines that contain a text outside comments."""
    return {number for number, line in enumerate(lines, 1) if text in line.split("//")[0]}


def _is_resumed(recording: Recording, moment: int) -> bool:
    launch, event = recording.locate_moment(moment)
    return bool(launch.trace.data.events["resumed"][event])
