"""Questions about whole runs: in other schedules, with checkers, and on a modeled GPU."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from math import prod
from typing import Any

import numpy as np

from gpu.base.errors import InputError, LaunchError
from gpu.base.schedules import ROUND_ROBIN, Schedule
from gpu.engines.modeling_engine import ModelingEngine
from gpu.engines.simulator import SimulatorEngine
from gpu.lessons.lesson import Lesson, Question
from gpu.lessons.lesson_reader import plain_text
from gpu.lessons.scenes import RecordedScene, complete_parameters, line_text
from gpu.lessons.stage import Stage
from gpu.messages.judgments import GradingCase
from gpu.messages.kernels import are_results_equal
from gpu.messages.lessons import RecordingQuestion
from gpu.messages.modeled_time import format_duration
from gpu.messages.verdicts import collect_mistakes, describe_mistakes
from gpu.patterns import find_pattern
from gpu.run.host_program import run_host_program
from gpu.run.modeling.timing_model import ModeledRun, model_pattern
from gpu.timing.gpus import find_gpu

SCHEDULES = ("shuffle:1", "shuffle:2", "shuffle:3", "lanes:1", "lanes:2", "cached:0")
"""Schedules in which a question compares results."""

DEFAULT_GPU = "h200"
MISTAKES = {
    "race": "a race: two threads access one element without an order",
    "out-of-bounds": "an out-of-bounds access",
    "misaligned": "a misaligned access",
    "uninitialized": "an uninitialized read",
    "barrier": "a barrier that not all threads reach",
    "warp-mask": "a warp function with wrong lanes in its mask",
    "endless": "a loop that does not end",
    "unfinished": "a loop that does not end within the limit",
}
NO_MISTAKE = "nothing: it is correct"
_YES, _NO = "yes, the result depends on the schedule", "no, every schedule gives the same result"
_MIN_SPEEDUP = 1.05
"""Smallest ratio of times that counts as faster; the timing model is not more accurate."""
_NEITHER_FASTER = "neither: they differ by less than 5%"
_LIMIT_NAMES = {
    "memory": "DRAM bandwidth",
    "last cache": "L2 bandwidth",
    "first cache and shared memory": "passes over L1 and shared memory",
    "issue": "instruction issue",
    "arithmetic": "arithmetic",
    "atomics": "atomic operations on one address",
    "launch": "launch overhead: there is too little work",
    "latency": "latency: too few operations are in flight",
    "block starts": "starts of blocks: the blocks have too few threads",
}

_OCCUPANCY_LIMITS = {
    "warps": "the number of warps",
    "blocks": "the number of blocks",
    "registers": "the registers",
    "shared memory": "shared memory",
}


def ask_order(lesson: Lesson, recorded_scene: RecordedScene, question: Question) -> RecordingQuestion:
    """Ask whether another schedule gives another result."""
    first = _run_scene(lesson, recorded_scene, ROUND_ROBIN)
    differing = [
        schedule for schedule in SCHEDULES if not _are_equal(first, _run_scene(lesson, recorded_scene, schedule))
    ]
    findings = [finding for _, finding in recorded_scene.recording.findings]
    why = f"{len(SCHEDULES)} other schedules were tried."
    if differing:
        why = f"In another schedule ({Schedule.parse(differing[0]).title.lower()}) the result differs."
    line = 0
    if findings:
        why += f" Found: {describe_mistakes(collect_mistakes(findings, recorded_scene.file))}."
        line = findings[0].positions[0].line if findings[0].positions else 0
    return RecordingQuestion(
        "order",
        "Can another schedule of the threads give another result?",
        "choice",
        _YES if differing else _NO,
        why,
        (_YES, _NO),
        moment=recorded_scene.recording.findings[0][0] if findings else recorded_scene.moment,
        line=line,
        source=line_text(recorded_scene.recording, recorded_scene.file, line),
    )


def ask_mistake(lesson: Lesson, recorded_scene: RecordedScene, question: Question) -> RecordingQuestion:
    """Ask what the kernel does wrong."""
    findings = recorded_scene.recording.findings
    choices = (*MISTAKES.values(), NO_MISTAKE)
    if not findings:
        return RecordingQuestion(
            "mistake", "What does this kernel do wrong?", "choice", NO_MISTAKE, "The checkers found nothing.", choices,
            moment=recorded_scene.moment,
        )  # fmt: skip
    moment, finding = findings[0]
    if finding.kind not in MISTAKES:
        raise InputError(f"Mistakes of the kind {finding.kind!r} are not supported in questions.")
    line = finding.positions[0].line if finding.positions else 0
    return RecordingQuestion(
        "mistake",
        "What does this kernel do wrong?",
        "choice",
        MISTAKES[finding.kind],
        finding.message,
        choices,
        moment=moment,
        line=line,
        source=line_text(recorded_scene.recording, recorded_scene.file, line),
    )


def ask_faster(lesson: Lesson, recorded_scene: RecordedScene, question: Question) -> RecordingQuestion:
    """Ask which of two variants, or of two of the lesson's kernels, is faster on a modeled GPU."""
    alternative = question.options["with"]
    shown = recorded_scene.scene.stage or recorded_scene.scene.variant
    runs = {name: _model_scene(lesson, recorded_scene, question, name) for name in (shown, alternative)}
    times = {name: run.time_us for name, run in runs.items()}
    best, slower = sorted(times, key=lambda name: times[name])
    gpu = runs[shown].gpu.name
    modeled = ", ".join(f"{name} {format_duration(time)}" for name, time in times.items())
    answer = best if times[slower] >= _MIN_SPEEDUP * times[best] else _NEITHER_FASTER
    limit = f"{slower} is limited by {_name_limit(runs[slower])}"
    return RecordingQuestion(
        "faster",
        f"Which is faster on an {gpu}, as modeled, with {_format_size(recorded_scene, question)}?",
        "choice",
        answer,
        f"Modeled: {modeled}; {limit}.",
        (shown, alternative, _NEITHER_FASTER),
        moment=recorded_scene.moment,
    )


def ask_bound(lesson: Lesson, recorded_scene: RecordedScene, question: Question) -> RecordingQuestion:
    """Ask which resource limits a variant, or a kernel of the lesson, on a modeled GPU."""
    run = _model_scene(lesson, recorded_scene, question, recorded_scene.scene.stage or recorded_scene.scene.variant)
    answer = _name_limit(run)
    choices = tuple(dict.fromkeys((*_LIMIT_NAMES.values(), answer)))
    largest = sorted(run.breakdown.items(), key=lambda each: -each[1])[:3]
    limits = ", ".join(
        f"{_LIMIT_NAMES.get(name, name).partition(':')[0]} {format_duration(amount)}"
        for name, amount in largest
        if amount
    )
    return RecordingQuestion(
        "bound",
        f"What limits it on an {run.gpu.name}, as modeled, with {_format_size(recorded_scene, question)}?",
        "choice",
        answer,
        f"Modeled {format_duration(run.time_us)}; each limit alone would take: {limits}.",
        choices,
        moment=recorded_scene.moment,
    )


def ask_occupancy(lesson: Lesson, recorded_scene: RecordedScene, question: Question) -> RecordingQuestion:
    """Ask how many warps of a variant, or a kernel of the lesson, a multiprocessor of a GPU holds at once."""
    run = _model_scene(lesson, recorded_scene, question, recorded_scene.scene.stage or recorded_scene.scene.variant)
    launch, gpu = run.longest_launch, run.gpu
    if launch is None or launch.estimate is None:
        raise InputError("The scene launches no kernel.")
    estimate, occupancy = launch.estimate, launch.estimate.occupancy
    reserved = f", plus {gpu.shared_reserved_bytes:,} that CUDA reserves" if gpu.shared_reserved_bytes > 1 else ""
    return RecordingQuestion(
        "occupancy",
        f"How many warps are resident on a multiprocessor of an {gpu.name} in a large grid? It has room for "
        f"{gpu.warps} warps, {gpu.blocks} blocks, {gpu.registers:,} registers and {gpu.shared_bytes:,} bytes of shared "
        f"memory. A block has {prod(launch.block)} threads with {estimate.registers} registers each, and "
        f"{estimate.shared_bytes:,} bytes of shared memory{reserved}.",
        "number",
        occupancy.warps,
        f"The limit is {_OCCUPANCY_LIMITS[occupancy.limiting_resource]}: {occupancy.blocks} "
        f"{'block fits' if occupancy.blocks == 1 else 'blocks fit'}.",
        moment=recorded_scene.moment,
    )


def _name_limit(run: ModeledRun) -> str:
    starts_us = sum(launch.estimate.block_starts_us for launch in run.launches if launch.estimate is not None)
    # The timing model counts all time in which no unit is busy as latency.
    if run.bound_by == "latency" and starts_us >= run.breakdown["latency"]:
        return _LIMIT_NAMES["block starts"]
    return _LIMIT_NAMES.get(run.bound_by, run.bound_by)


def _format_size(recorded_scene: RecordedScene, question: Question) -> str:
    n = _select_option(recorded_scene, question, "n", recorded_scene.parameters.get("n", "its own size"))
    return f"n = {n:,}" if isinstance(n, int) else f"n = {n}"


def _select_option(recorded_scene: RecordedScene, question: Question, name: str, default: Any) -> Any:
    """Return an option's value; from a list the seed selects, cycling through the GPUs first, then the sizes."""
    values = question.options.get(name, (default,))
    turn = recorded_scene.seed // len(question.options.get("gpu", (default,))) if name == "n" else recorded_scene.seed
    return values[turn % len(values)]


def _model_scene(lesson: Lesson, recorded_scene: RecordedScene, question: Question, name: str) -> ModeledRun:
    gpu = _select_option(recorded_scene, question, "gpu", DEFAULT_GPU)
    size = {"n": _select_option(recorded_scene, question, "n", 0)} if "n" in question.options else {}
    if recorded_scene.scene.stage:
        stage = lesson.stage(name)
        case = GradingCase(size.get("n", recorded_scene.parameters["n"]), seed=recorded_scene.seed)
        return model_stage(stage, plain_text(lesson, name), case, gpu)
    pattern = find_pattern(recorded_scene.scene.pattern)
    params = pattern.check({**complete_parameters(recorded_scene.scene, recorded_scene.parameters), **size})
    return model_pattern(pattern.variant(name), pattern.prepare_inputs({}, params, recorded_scene.seed), params, gpu)


def model_stage(stage: Stage, text: str, case: GradingCase, gpu: str, *, nvcc: bool = True) -> ModeledRun:
    """Model a lesson's kernel on a GPU.

    Parameters
    ----------
    stage : Stage
        The kernel file's launches and arrays.
    text : str
        The complete text of the kernel file.
    case : GradingCase
        The input.
    gpu : str
        The name of a GPU description, or a file with one.
    nvcc : bool
        Whether the timing model may use nvcc if it is installed.

    Raises
    ------
    InputError, KernelError
        As of `gpu.run.modeling.timing_model.model_pattern` and `Stage.run`.
    """
    description = find_gpu(gpu)
    with closing(ModelingEngine(description, nvcc=nvcc)) as engine:
        engine.sources = {stage.file: text}
        stage.run(
            engine, stage.generate_inputs(case, stage.find_types(engine.build_simulated_module(stage.file))), case
        )
        return ModeledRun(description, tuple(engine.launches), engine.source, engine.all_executed)


def _run_scene(lesson: Lesson, recorded_scene: RecordedScene, schedule: str) -> Mapping[str, Any] | None:
    """Return the outputs of a scene's launches in a schedule; None if a mistake ends them."""
    engine = SimulatorEngine("lockstep", schedule=schedule)
    with closing(engine):
        try:
            if recorded_scene.scene.stage:
                stage = lesson.stage(recorded_scene.scene.stage)
                engine.sources = {stage.file: plain_text(lesson, recorded_scene.scene.stage)}
                case = GradingCase(recorded_scene.parameters["n"], seed=recorded_scene.seed)
                before = stage.generate_inputs(
                    case, stage.find_types(engine.build_simulated_module(stage.file)), for_display=True
                )
                after = stage.run(engine, before, case)
                return {name: after[name] for name in stage.outputs}
            pattern = find_pattern(recorded_scene.scene.pattern)
            params = pattern.check(complete_parameters(recorded_scene.scene, recorded_scene.parameters))
            inputs = pattern.prepare_inputs({}, params, recorded_scene.seed)
            outputs = run_host_program(
                engine, pattern.variant(recorded_scene.scene.variant), inputs, params, lambda progress: None
            )
        except LaunchError:
            return None
        return {pattern.result: np.asarray(outputs[pattern.result])}


def _are_equal(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    if one is None or other is None:
        return one is None and other is None
    return all(are_results_equal(np.asarray(one[name]), np.asarray(other[name])) for name in one)
