"""Whether what a student wrote is right: run by the simulator on many inputs, in many orders, before all checkers."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gpu.bounds import bounded
from gpu.engines.base import KERNELS
from gpu.engines.checking import CheckingEngine
from gpu.errors import CompileError, Diagnostic, InputError, KernelError, LaunchError
from gpu.lessons.expressions import Array, evaluate
from gpu.lessons.lesson import Lesson, Task
from gpu.lessons.questions.of_runs import DEFAULT_GPU, model_stage
from gpu.lessons.scenes import MOST_ROUNDS, record_stage
from gpu.lessons.stage import Stage
from gpu.lessons.tasks import reference
from gpu.messages.judgments import MANY, Judgment, LimitMet, StageCase, WrongElement
from gpu.messages.verdicts import Check, Verdict, mistakes_in_words, mistakes_of, verdict_of
from gpu.run.count import summed
from gpu.schedules import ROUND_ROBIN
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.checkers.report import diagnostics_of
from gpu.simulator.counting.counters import Counters
from gpu.simulator.executor.memory import POISON
from gpu.simulator.frontend.diagnose import diagnostic_at
from gpu.stepping.recording import Recording

_THOROUGH = 65
"""Up to this size every kind of input is tried, above it those that show most."""
_OFTEN = ("random", "only the last", "highest")
_SECONDS = 20.0
"""Of computing, after which a launch is given up that its rounds have not ended: a verdict has no time in it."""
_ORDERED = (("lanes", 128), ("shuffle", 512), ("cached", 512))
"""The kinds of orders, and the most threads that a launch has in each: one by one they take long."""


@dataclass(frozen=True, eq=False)
class Opened:
    """A judged text's failing case, recorded, at the moment at which it goes wrong.

    Parameters
    ----------
    recording : Recording
    moment : int
        The statement that does it; of an element that nobody writes the end.
    """

    recording: Recording
    moment: int


def judge(lesson: Lesson, task: Task, text: str, *, seed: int = 0) -> Judgment:
    """Judge what was written for a task; one text and one seed have one verdict.

    Parameters
    ----------
    lesson : Lesson
    task : Task
    text : str
        A whole kernel file.
    seed : int
        What hidden inputs grow from.

    Raises
    ------
    InputError
        The lesson itself is at fault: an expectation that cannot be computed, a reference that does not run.
    """
    return _Judge(lesson, task, text, seed).judgment()


def opened(lesson: Lesson, task: Task, text: str, judgment: Judgment) -> Opened | None:
    """Record the case on which a text fails; None where it fails on none."""
    if judgment.case is None:
        return None
    stage = lesson.stage(task.stage)
    recording = record_stage(stage, text, judgment.case)
    if recording.findings and judgment.check.mistakes:
        return Opened(recording, recording.findings[0][0])
    moment = recording.moments
    if judgment.wrong is not None:
        parameters = _parameters(stage, text, judgment.wrong.array)
        for launch, name in reversed([*zip(recording.launches, parameters, strict=False)]):
            array = next((each for each in launch.trace.arrays if each.name == name), None)
            write = launch.trace.memory.writer(array, judgment.wrong.index, launch.count) if array else None
            if write is not None:
                moment = launch.first + write.event
                break
    return Opened(recording, moment)


def cases(task: Task, stage: Stage, seed: int) -> Iterator[StageCase]:
    """Yield a task's inputs, the smallest first, and behind them those that are run in other orders."""
    hidden = zlib.crc32(f"{task.name} {seed}".encode())
    for n in task.sizes:
        for kind in task.kinds:
            if n > _THOROUGH and kind not in _OFTEN:
                continue
            yield StageCase(n, kind, hidden)
            if kind == MANY:
                yield StageCase(n, kind, hidden + 1)
    for number in range(task.orders):
        kind, most = _ORDERED[number % len(_ORDERED)]
        small = [n for n in task.sizes if stage.threads(n) <= most] or list(task.sizes[:1])
        n = small[-1 - number // len(_ORDERED) % min(2, len(small))]
        yield StageCase(n, MANY, hidden, f"{kind}:{number}")


class _Judge:
    """Judges one text."""

    def __init__(self, lesson: Lesson, task: Task, text: str, seed: int) -> None:
        self._lesson, self._task, self._text, self._seed = lesson, task, text, seed
        self._stage = lesson.stage(task.stage)
        self._reference = reference(lesson, task)
        self._runs = 0
        self._nearest: dict[str, LimitMet] = {}

    def judgment(self) -> Judgment:
        engine, right = (
            CheckingEngine(on_print=lambda thread, text: None),
            CheckingEngine(on_print=lambda thread, text: None),
        )
        with closing(engine), closing(right):
            engine.sources = {self._stage.file: self._text}
            engine.max_rounds, engine.max_seconds = MOST_ROUNDS, _SECONDS
            right.sources = {self._stage.file: self._reference}
            try:
                types = self._stage.types(right.built(self._stage.file))
            except KernelError as error:
                raise InputError(f"The reference solution of {self._task.name} fails: {error.message}") from None
            try:
                own = self._stage.types(engine.built(self._stage.file))
                for launch in self._stage.launches:
                    engine.built(self._stage.file).kernel(launch.kernel)
            except (KernelError, InputError) as error:
                return self._refused(error)
            if own != types:
                return self._refused(KernelError("The kernel's parameters are not those of the task any more."))
            kept = _Variables(engine.built(self._stage.file))
            for case in cases(self._task, self._stage, self._seed):
                failed = self._try(engine, right, case, types, kept)
                if failed is not None:
                    return failed
        return self._within_limits()

    def _try(
        self,
        engine: CheckingEngine,
        right: CheckingEngine,
        case: StageCase,
        types: Mapping[str, np.dtype[Any]],
        kept: _Variables,
    ) -> Judgment | None:
        """Run one case; return what is said of a failure."""
        before = self._stage.inputs(case, types)
        kept.restore()
        counters = Counters()
        engine.findings.clear()
        engine.schedule = case.schedule
        counted = bool(self._task.limits) and case.schedule == ROUND_ROBIN and case.kind == MANY
        engine.also = (counters,) if counted else ()
        self._runs += 1
        after: Mapping[str, Array] | None = None
        try:
            with bounded(None):
                after = self._stage.run(engine, before, case.n)
        except LaunchError as error:
            if not error.kind:
                return self._refused(error)
        except InputError as error:
            return self._refused(error)
        except MemoryError:
            return self._refused(InputError("It takes more memory than the 1 GB that a submission may."), case)
        expected = self._expected(right, before, case)
        wrong = self._wrong(after, expected) if after is not None else None
        if engine.findings or wrong is not None or after is None:
            return self._failed(engine.findings, wrong, case, ended=after is None)
        if counted:
            self._count(counters, case.n)
        return None

    def _expected(self, right: CheckingEngine, before: Mapping[str, Array], case: StageCase) -> dict[str, Array]:
        if self._stage.expects:
            return self._stage.expected(before, case.n)
        try:
            after = self._stage.run(right, before, case.n)
        except LaunchError as error:
            raise InputError(f"The reference solution of {self._task.name} fails: {error.message}") from None
        return {name: after[name] for name in self._stage.outputs}

    def _wrong(self, after: Mapping[str, Array], expected: Mapping[str, Array]) -> WrongElement | None:
        for name, should in expected.items():
            got = after[name].reshape(-1)
            if got.size != should.size:
                raise InputError(f"{name} has {got.size} elements, and the lesson expects {should.size}.")
            real = got.dtype.kind == "f"
            exact = np.asarray(should, np.float64)
            scale = float(np.abs(exact).max(initial=0.0)) or 1.0
            with np.errstate(invalid="ignore", over="ignore"):
                off = np.abs(got.astype(np.float64) - exact)
                bad = ~(off <= self._stage.tolerance * scale) if real else got != should.astype(got.dtype)
            if bad.any():
                index = int(np.argmax(bad))
                empty = self._stage.arrays[name].use == "out" and not self._stage.arrays[name].fill
                untouched = empty and not (got[index : index + 1].view(np.uint8) ^ POISON).any()
                return WrongElement(name, index, float(got[index]), float(exact[index]), untouched)
        return None

    def _count(self, counters: Counters, n: int) -> None:
        """Hold what was counted against the task's limits."""
        counts: dict[str, float] = dict(summed(counters.total()))
        counts["sectors_per_request"] = counts["sectors"] / counts["requests"] if counts["requests"] else 0.0
        names = self._stage.names(n)
        for counter, text in self._task.limits.items():
            met = LimitMet(counter, n, round(counts[counter], 3), float(evaluate(text, names)))
            before = self._nearest.get(counter)
            if before is None or (before.met and (not met.met or _share(met) >= _share(before))):
                self._nearest[counter] = met

    def _within_limits(self) -> Judgment:
        limits = tuple(self._nearest.values())
        if self._task.modeled:
            limits = (*limits, self._modeled())
        beyond = [each for each in limits if not each.met]
        orders = tuple(
            case.schedule for case in cases(self._task, self._stage, self._seed) if case.schedule != ROUND_ROBIN
        )
        check = Check(input=f"n up to {max(self._task.sizes)}", orders=orders)
        if beyond:
            words = f"right, but too much: {beyond[0].counter.replace('_', ' ')}"
            verdict = Verdict("flawed", words, f"The result is right; {beyond[0]}.")
            case = StageCase(beyond[0].n, seed=zlib.crc32(f"{self._task.name} {self._seed}".encode()))
            return Judgment(self._task.name, False, verdict, check, case, None, limits, self._runs)
        verdict = verdict_of(True, edited=True, check=check)
        return Judgment(self._task.name, True, verdict, check, limits=limits, runs=self._runs)

    def _modeled(self) -> LimitMet:
        """Model the text and the reference solution, and compare them."""
        gpu, n = self._task.modeled.get("gpu", DEFAULT_GPU), int(self._task.modeled["n"])
        times = float(self._task.modeled.get("times", 1.2))
        own, right = (
            model_stage(self._stage, text, StageCase(n), gpu).time_us for text in (self._text, self._reference)
        )
        return LimitMet(f"microseconds on a modeled {gpu.upper()}", n, round(own, 2), round(times * right, 2))

    def _failed(
        self, findings: Sequence[Finding], wrong: WrongElement | None, case: StageCase, *, ended: bool
    ) -> Judgment:
        mistakes = mistakes_of(findings, self._stage.file)
        differing = (case.schedule,) if case.schedule != ROUND_ROBIN else ()
        check = Check(
            mistakes=mistakes,
            diagnostics=diagnostics_of(findings, self._text, Path(self._stage.file)),
            ended=ended,
            input=str(replace(case, schedule=ROUND_ROBIN)),
            differing=differing,
        )
        verdict = verdict_of(wrong is None and not ended, edited=True, check=check)
        if wrong is not None and mistakes and not ended:
            verdict = Verdict("wrong", f"✗ wrong: it {mistakes_in_words(mistakes)}", verdict.sentence)
        return Judgment(self._task.name, False, verdict, check, case, wrong, runs=self._runs)

    def _refused(self, error: KernelError | InputError, case: StageCase | None = None) -> Judgment:
        what = "does not compile" if isinstance(error, CompileError) else "cannot be run"
        said = f"{error.message} {error.advice}".strip()
        position = error.position if isinstance(error, KernelError) else None
        diagnostics: tuple[Diagnostic, ...] = ()
        if position is not None and position.file in (self._stage.file, (KERNELS / self._stage.file).name):
            said = said.removeprefix(f"{position}: ")
            own = replace(position, file=self._stage.file)
            lines = self._text.split("\n")
            diagnostics = (diagnostic_at(said, own, Path(self._stage.file), lines, "error"),)
            said = ""
        check = Check(diagnostics=diagnostics, ended=True, failure=error.message)
        verdict = Verdict("wrong", f"✗ it {what}", said or error.message)
        return Judgment(self._task.name, False, verdict, check, case, None, runs=self._runs, failure=said)


class _Variables:
    """What a module's variables hold before anything ran: one run finds them as the next one does."""

    def __init__(self, module: Any) -> None:
        self._memories = [module.variable(name) for name in module.variables]
        self._before = [memory.data.copy() for memory in self._memories]

    def restore(self) -> None:
        for memory, before in zip(self._memories, self._before, strict=True):
            memory.data[:] = before


def _share(limit: LimitMet) -> float:
    return limit.counted / limit.most if limit.most else math.inf if limit.counted else 0.0


def _parameters(stage: Stage, text: str, array: str) -> list[str]:
    """Return for each launch the name of the parameter that gets an array; "" where none does."""
    engine = CheckingEngine()
    engine.sources = {stage.file: text}
    with closing(engine):
        module = engine.built(stage.file)
        return [
            next(
                (
                    name
                    for argument, (name, _) in zip(
                        launch.arguments, module.kernel(launch.kernel).parameters, strict=False
                    )
                    if argument == array
                ),
                "",
            )
            for launch in stage.launches
        ]
