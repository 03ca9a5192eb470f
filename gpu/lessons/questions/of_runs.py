"""Questions about whole runs: in other schedules, with checkers, and on a modeled GPU."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np

from gpu.engines.modeling import ModelingEngine
from gpu.engines.simulator import SimulatorEngine
from gpu.errors import InputError, LaunchError
from gpu.lessons.lesson import Lesson, Question
from gpu.lessons.reading import plain_text
from gpu.lessons.scenes import PlayedScene, line_text, with_defaults
from gpu.lessons.stage import Stage
from gpu.messages.judgments import StageCase
from gpu.messages.kernels import alike
from gpu.messages.lessons import AskedQuestion
from gpu.messages.modeled import as_duration
from gpu.messages.verdicts import mistakes_in_words, mistakes_of
from gpu.patterns import find_pattern
from gpu.run.drive import drive
from gpu.run.model import ModeledRun, model_pattern
from gpu.schedules import ROUND_ROBIN, Schedule
from gpu.timing.gpus import find_gpu

ORDERS = ("shuffle:1", "shuffle:2", "shuffle:3", "lanes:1", "lanes:2", "cached:0")
"""Schedules in which a question compares results."""

DEFAULT_GPU = "h200"
MISTAKES = {
    "race": "a race: two threads access one element without an order",
    "out-of-bounds": "an out-of-bounds access",
    "uninitialized": "an uninitialized read",
    "barrier": "a barrier that not all threads reach",
    "warp-mask": "a warp function with wrong lanes in its mask",
    "endless": "a loop that does not end",
}
NOTHING = "nothing: it is correct"
_YES, _NO = "yes, the result depends on the schedule", "no, every schedule gives the same result"
_FASTER = 1.05
"""Smallest ratio of times that counts as faster; the timing model is not more accurate."""
_NEITHER = "neither: they differ by less than 5 %"
_LIMITS = {
    "memory": "DRAM bandwidth",
    "last cache": "L2 bandwidth",
    "first cache and shared memory": "passes over L1 and shared memory",
    "issue": "instruction issue",
    "arithmetic": "arithmetic",
    "atomics": "atomic operations on one address",
    "launch": "launch overhead: there is too little work",
    "latency": "latency: too few operations are in flight",
}


def order(lesson: Lesson, played: PlayedScene, question: Question) -> AskedQuestion:
    """Ask whether another schedule gives another result."""
    first = _outputs(lesson, played, ROUND_ROBIN)
    differing = [each for each in ORDERS if not _same(first, _outputs(lesson, played, each))]
    findings = [finding for _, finding in played.recording.findings]
    why = f"{len(ORDERS)} other schedules were tried."
    if differing:
        why = f"In another schedule ({Schedule.of(differing[0]).title.lower()}) the result differs."
    line = 0
    if findings:
        why += f" The kernel {mistakes_in_words(mistakes_of(findings, played.file))}."
        line = findings[0].positions[0].line if findings[0].positions else 0
    return AskedQuestion(
        "order",
        "Can another schedule of the threads give another result?",
        "choice",
        _YES if differing else _NO,
        why,
        (_YES, _NO),
        moment=played.recording.findings[0][0] if findings else played.moment,
        line=line,
        source=line_text(played.recording, played.file, line),
    )


def mistake(lesson: Lesson, played: PlayedScene, question: Question) -> AskedQuestion:
    """Ask what the kernel does wrong."""
    findings = played.recording.findings
    choices = (*MISTAKES.values(), NOTHING)
    if not findings:
        return AskedQuestion(
            "mistake", "What does this kernel do wrong?", "choice", NOTHING, "The checkers found nothing.", choices,
            moment=played.moment,
        )  # fmt: skip
    moment, finding = findings[0]
    if finding.kind not in MISTAKES:
        raise InputError(f"Mistakes of the kind {finding.kind!r} are not supported in questions.")
    line = finding.positions[0].line if finding.positions else 0
    return AskedQuestion(
        "mistake",
        "What does this kernel do wrong?",
        "choice",
        MISTAKES[finding.kind],
        finding.message,
        choices,
        moment=moment,
        line=line,
        source=line_text(played.recording, played.file, line),
    )


def faster(lesson: Lesson, played: PlayedScene, question: Question) -> AskedQuestion:
    """Ask which of two variants, or of two of the lesson's kernels, is faster on a modeled GPU."""
    other = question.options["with"]
    own = played.scene.stage or played.scene.variant
    runs = {name: _model_run(lesson, played, question, name) for name in (own, other)}
    times = {name: run.time_us for name, run in runs.items()}
    best, slower = sorted(times, key=lambda name: times[name])
    gpu = runs[own].gpu.name
    modeled = ", ".join(f"{name} {as_duration(time)}" for name, time in times.items())
    answer = best if times[slower] >= _FASTER * times[best] else _NEITHER
    limit = f"{slower} is limited by {_limit(runs[slower])}"
    return AskedQuestion(
        "faster",
        f"Which is faster on an {gpu}, as modeled, with {_size_text(played, question)}?",
        "choice",
        answer,
        f"Modeled: {modeled}; {limit}.",
        (own, other, _NEITHER),
        moment=played.moment,
    )


def bound(lesson: Lesson, played: PlayedScene, question: Question) -> AskedQuestion:
    """Ask which resource limits a variant, or a kernel of the lesson, on a modeled GPU."""
    run = _model_run(lesson, played, question, played.scene.stage or played.scene.variant)
    answer = _limit(run)
    choices = tuple(dict.fromkeys((*_LIMITS.values(), answer)))
    largest = sorted(run.breakdown.items(), key=lambda each: -each[1])[:3]
    limits = ", ".join(
        f"{_LIMITS.get(name, name).partition(':')[0]} {as_duration(amount)}" for name, amount in largest if amount
    )
    return AskedQuestion(
        "bound",
        f"What limits it on an {run.gpu.name}, as modeled, with {_size_text(played, question)}?",
        "choice",
        answer,
        f"Modeled {as_duration(run.time_us)}; each limit alone would take: {limits}.",
        choices,
        moment=played.moment,
    )


def _limit(run: ModeledRun) -> str:
    return _LIMITS.get(run.bound_by, run.bound_by)


def _size_text(played: PlayedScene, question: Question) -> str:
    n = _select(played, question, "n", played.parameters.get("n", "its own size"))
    return f"n = {n:,}" if isinstance(n, int) else f"n = {n}"


def _select(played: PlayedScene, question: Question, name: str, default: Any) -> Any:
    """Return an option's value; from a list the seed selects, cycling through the GPUs first, then the sizes."""
    values = question.options.get(name, (default,))
    turn = played.seed // len(question.options.get("gpu", (default,))) if name == "n" else played.seed
    return values[turn % len(values)]


def _model_run(lesson: Lesson, played: PlayedScene, question: Question, name: str) -> ModeledRun:
    gpu = _select(played, question, "gpu", DEFAULT_GPU)
    size = {"n": _select(played, question, "n", 0)} if "n" in question.options else {}
    if played.scene.stage:
        stage = lesson.stage(name)
        case = StageCase(size.get("n", played.parameters["n"]), seed=played.seed)
        return model_stage(stage, plain_text(lesson, name), case, gpu)
    pattern = find_pattern(played.scene.pattern)
    params = pattern.check({**with_defaults(played.scene, played.parameters), **size})
    return model_pattern(pattern.variant(name), pattern.inputs({}, params, played.seed), params, gpu)


def model_stage(stage: Stage, text: str, case: StageCase, gpu: str) -> ModeledRun:
    """Model a lesson's kernel; raises as `gpu.run.model.model_pattern`."""
    description = find_gpu(gpu)
    with closing(ModelingEngine(description)) as engine:
        engine.sources = {stage.file: text}
        stage.run(engine, stage.inputs(case, stage.types(engine.built(stage.file))), case.n)
        return ModeledRun(description, tuple(engine.launches), engine.source, engine.all_ran)


def _outputs(lesson: Lesson, played: PlayedScene, schedule: str) -> Mapping[str, Any] | None:
    """Return the outputs of a scene's launches in a schedule; None if a mistake ends them."""
    engine = SimulatorEngine("lockstep", schedule=schedule)
    with closing(engine):
        try:
            if played.scene.stage:
                stage = lesson.stage(played.scene.stage)
                engine.sources = {stage.file: plain_text(lesson, played.scene.stage)}
                case = StageCase(played.parameters["n"], seed=played.seed)
                before = stage.inputs(case, stage.types(engine.built(stage.file)), shown=True)
                after = stage.run(engine, before, case.n)
                return {name: after[name] for name in stage.outputs}
            pattern = find_pattern(played.scene.pattern)
            params = pattern.check(with_defaults(played.scene, played.parameters))
            inputs = pattern.inputs({}, params, played.seed)
            outputs = drive(engine, pattern.variant(played.scene.variant), inputs, params, lambda progress: None)
        except LaunchError:
            return None
        return {pattern.result: np.asarray(outputs[pattern.result])}


def _same(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    if one is None or other is None:
        return one is None and other is None
    return all(alike(np.asarray(one[name]), np.asarray(other[name])) for name in one)
