"""Questions of whole runs: in other orders, before the checkers' eyes, and on a GPU that is modeled."""

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
"""In which a question tries whether results differ."""

DEFAULT_GPU = "h200"
MISTAKES = {
    "race": "a race: two threads, one element, nothing that orders them",
    "out-of-bounds": "an access outside of an array",
    "uninitialized": "a read of what nobody wrote",
    "barrier": "a barrier that not all threads reach",
    "warp-mask": "a warp function whose mask names the wrong lanes",
    "endless": "a loop that does not end",
}
NOTHING = "nothing: it is sound"
_YES, _NO = "yes, the result depends on the order", "no, every order gives the same"
_APART = 1.05
"""How many times as long one has to take for the other to be faster: a model's word is no closer than that."""
_NEITHER = "neither: they differ by less than 5 %"
_BY = {
    "memory": "the bandwidth of its memory",
    "last cache": "the bandwidth of its last cache",
    "first cache and shared memory": "the passes over first cache and shared memory",
    "issue": "issuing instructions",
    "arithmetic": "arithmetic",
    "atomics": "atomics that queue for one address",
    "launch": "launching: there is too little to do",
    "latency": "latency: too little is under way at once",
}


def order(lesson: Lesson, played: PlayedScene, question: Question) -> AskedQuestion:
    """Ask whether another order of threads gives another result."""
    first = _outputs(lesson, played, ROUND_ROBIN)
    differing = [each for each in ORDERS if not _same(first, _outputs(lesson, played, each))]
    findings = [finding for _, finding in played.recording.findings]
    why = f"{len(ORDERS)} other orders were tried."
    if differing:
        why = f"In another order ({Schedule.of(differing[0]).title.lower()}) the result is another."
    line = 0
    if findings:
        why += f" The kernel {mistakes_in_words(mistakes_of(findings, played.file))}."
        line = findings[0].positions[0].line if findings[0].positions else 0
    return AskedQuestion(
        "order",
        "Threads may run in another order. Can that give another result?",
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
        raise InputError(f"A question cannot ask for a mistake of the kind {finding.kind!r}.")
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
    """Ask which of two variants, or of two kernels of the lesson's, is faster on a modeled GPU."""
    other = question.options["with"]
    own = played.scene.stage or played.scene.variant
    runs = {name: _modeled(lesson, played, question, name) for name in (own, other)}
    times = {name: run.time_us for name, run in runs.items()}
    best, slower = sorted(times, key=lambda name: times[name])
    gpu = runs[own].gpu.name
    said = ", ".join(f"{name} {as_duration(time)}" for name, time in times.items())
    answer = best if times[slower] >= _APART * times[best] else _NEITHER
    bound = f"{slower} is held back by {_in_words(runs[slower])}"
    return AskedQuestion(
        "faster",
        f"Which is faster on an {gpu}, as modeled, with {_sized(played, question)}?",
        "choice",
        answer,
        f"Modeled: {said}; {bound}.",
        (own, other, _NEITHER),
        moment=played.moment,
    )


def bound(lesson: Lesson, played: PlayedScene, question: Question) -> AskedQuestion:
    """Ask what holds a variant, or a kernel of the lesson's, back on a modeled GPU."""
    run = _modeled(lesson, played, question, played.scene.stage or played.scene.variant)
    answer = _in_words(run)
    choices = tuple(dict.fromkeys((*_BY.values(), answer)))
    largest = sorted(run.breakdown.items(), key=lambda each: -each[1])[:3]
    said = ", ".join(
        f"{_BY.get(name, name).partition(':')[0]} {as_duration(amount)}" for name, amount in largest if amount
    )
    return AskedQuestion(
        "bound",
        f"What holds it back on an {run.gpu.name}, as modeled, with {_sized(played, question)}?",
        "choice",
        answer,
        f"Modeled {as_duration(run.time_us)}; if it were the only limit: {said}.",
        choices,
        moment=played.moment,
    )


def _in_words(run: ModeledRun) -> str:
    return _BY.get(run.bound_by, run.bound_by)


def _sized(played: PlayedScene, question: Question) -> str:
    n = _one_of(played, question, "n", played.parameters.get("n", "its own size"))
    return f"n = {n:,}" if isinstance(n, int) else f"n = {n}"


def _one_of(played: PlayedScene, question: Question, name: str, default: Any) -> Any:
    """Return what an option says, of several the one that the seed has: each GPU in turn, and then each size."""
    several = question.options.get(name, (default,))
    turn = played.seed // len(question.options.get("gpu", (default,))) if name == "n" else played.seed
    return several[turn % len(several)]


def _modeled(lesson: Lesson, played: PlayedScene, question: Question, name: str) -> ModeledRun:
    gpu = _one_of(played, question, "gpu", DEFAULT_GPU)
    size = {"n": _one_of(played, question, "n", 0)} if "n" in question.options else {}
    if played.scene.stage:
        stage = lesson.stage(name)
        case = StageCase(size.get("n", played.parameters["n"]), seed=played.seed)
        return model_stage(stage, plain_text(lesson, name), case, gpu)
    pattern = find_pattern(played.scene.pattern)
    params = pattern.check({**with_defaults(played.scene, played.parameters), **size})
    return model_pattern(pattern.variant(name), pattern.inputs({}, params, played.seed), params, gpu)


def model_stage(stage: Stage, text: str, case: StageCase, gpu: str) -> ModeledRun:
    """Model a lesson's kernel; errors as of `gpu.run.model.model_pattern`."""
    described = find_gpu(gpu)
    with closing(ModelingEngine(described)) as engine:
        engine.sources = {stage.file: text}
        stage.run(engine, stage.inputs(case, stage.types(engine.built(stage.file))), case.n)
        return ModeledRun(described, tuple(engine.launches), engine.source, engine.all_ran)


def _outputs(lesson: Lesson, played: PlayedScene, schedule: str) -> Mapping[str, Any] | None:
    """Return what a scene's launches leave in an order; None where that ends with a mistake."""
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
