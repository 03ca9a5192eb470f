"""Grader: run a submission in the simulator on many inputs and in several schedules, with all checkers."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gpu.base.errors import CompileError, Diagnostic, InputError, KernelError, LaunchError
from gpu.base.paths import KERNELS
from gpu.base.resource_limits import limit_resources
from gpu.base.schedules import ROUND_ROBIN
from gpu.engines.checking_engine import CheckingEngine
from gpu.kernel.figures import sum_counters
from gpu.lessons.expressions import Array, evaluate_number
from gpu.lessons.lesson import Lesson, Task
from gpu.lessons.program_grading import grade_program
from gpu.lessons.questions.run_questions import DEFAULT_GPU, model_stage
from gpu.lessons.scenes import MAX_LOOP_ITERATIONS, create_chooser, record_stage
from gpu.lessons.stage import Stage, find_wrong_elements
from gpu.lessons.stage_arrays import FRACTIONS_KIND, NEAR_KIND
from gpu.lessons.task_texts import reference_solution
from gpu.messages.judgments import RANDOM_KIND, CounterLimit, GradingCase, Judgment, WrongElement
from gpu.messages.verdicts import Check, Verdict, collect_mistakes, decide_verdict, describe_mistakes, format_lines
from gpu.recording.recording import Recording
from gpu.run.work_count import RETURNED_ATOMICS, collect_run_counts
from gpu.simulator.checkers.report import build_diagnostics
from gpu.simulator.counting.counters import Counters
from gpu.simulator.counting.expression_counter import ExpressionCounter
from gpu.simulator.executor.state.memory import POISON
from gpu.simulator.frontend.editor_diagnostics import build_diagnostic
from gpu.simulator.simulated_module import SimulatedModule
from gpu.timing.estimate.compiler import CapabilityError

_THOROUGH_SIZE = 65
"""Largest size for which every kind of input is tried; each larger size has `_EFFECTIVE_KINDS` and a few others."""
_EFFECTIVE_KINDS = ("random", "only the last", "highest", "large")
_MAX_RECORDED_SIZE = 5000
"""Largest size whose failure can be recorded and stepped through."""
_TRIAL_COUNT = 4
"""Values of `trial` in the lesson's expressions, from 0."""
_TIME_LIMIT_S = 20.0
"""Seconds after which a launch is stopped if it has not reached its loop limit; results do not depend on time."""
_SCHEDULE_KINDS = (("lanes", 128), ("shuffle", 512), ("cached", 512))
"""Kinds of schedules, and the most threads of a launch in each; running lanes independently is slow."""
_DESCENDING_THREADS = 512
"""The most threads of a launch whose blocks run one after the other, the last one first."""
_UNDEFINED = frozenset(
    f"-W{name}"
    for name in (
        *("division-by-zero", "return-type", "shift-count-negative", "shift-count-overflow"),
        *("sometimes-uninitialized", "uninitialized"),
    )
)
"""Options of compiler warnings about operations without a defined result."""


@dataclass(frozen=True, eq=False)
class FailureRecording:
    """Recording of a submission's failing case.

    Parameters
    ----------
    moment : int
        The statement that fails; the end, for an element that no thread writes.
    """

    recording: Recording
    moment: int


def grade_submission(lesson: Lesson, task: Task, text: str, *, seed: int = 0) -> Judgment:
    """Grade a submission; the result depends only on the text and the seed.

    Parameters
    ----------
    text : str
        Complete text of the kernel file.
    seed : int
        Random seed of hidden inputs.

    Raises
    ------
    InputError
        If the lesson is wrong: an expectation cannot be computed, or the reference solution fails.
    """
    stage = lesson.stage(task.stage)
    if stage.program is not None:
        return grade_program(task, stage, text, seed=seed)
    return _Grader(lesson, task, text, seed).grade()


def record_failure(lesson: Lesson, task: Task, text: str, judgment: Judgment) -> FailureRecording | None:
    """Record the case on which a submission fails.

    Parameters
    ----------
    task : Task
        One of the lesson's tasks.
    text : str
        The submission, as the complete text of the kernel file.
    judgment : Judgment
        The grader's result for this text.

    Returns
    -------
    FailureRecording or None
        None if no case fails.
    """
    if judgment.case is None:
        return None
    stage = lesson.stage(task.stage)
    recording = record_stage(stage, text, judgment.case)
    if recording.findings and judgment.check.mistakes:
        return FailureRecording(recording, recording.findings[0][0])
    moment = recording.event_count
    if judgment.wrong is not None:
        parameters = _find_parameter_names(stage, text, judgment.wrong.array)
        for launch, name in reversed([*zip(recording.launches, parameters, strict=False)]):
            array = next((each for each in launch.trace.arrays if each.name == name), None)
            write = launch.trace.memory.find_writer(array, judgment.wrong.index, launch.count) if array else None
            if write is not None:
                moment = launch.first + write.event
                break
    return FailureRecording(recording, moment)


def generate_cases(task: Task, stage: Stage, seed: int) -> Iterator[GradingCase]:
    """Yield a task's inputs, the smallest first; those in other schedules before the larger ones, which take longer."""
    hidden = zlib.crc32(f"{task.name} {seed}".encode())
    trials = _TRIAL_COUNT if stage.has_trials else 1
    scheduled = [*_generate_scheduled_cases(task, stage, hidden)]
    large_sizes = [n for n in task.sizes if n > _THOROUGH_SIZE]
    kinds = [kind for kind in task.kinds if kind != NEAR_KIND or stage.find_parameters(task.sizes[0])]
    others = [kind for kind in kinds if kind not in _EFFECTIVE_KINDS]
    # A thread has several elements only if the array is large: each of the other kinds occurs at one of these sizes.
    large = {n: {*_EFFECTIVE_KINDS, *others[number :: len(large_sizes)]} for number, n in enumerate(large_sizes)}
    for size_number, n in enumerate(task.sizes):
        if scheduled and n > max(case.n for case in scheduled):
            yield from scheduled
            scheduled.clear()
        for kind_number, kind in enumerate(kinds):
            if kind not in large.get(n, kinds):
                continue
            if kind == RANDOM_KIND:
                yield GradingCase(n, kind, hidden)
                # Only fractions lie between the integers next to a bound; most are in the larger inputs.
                has_fractions = n > _THOROUGH_SIZE and FRACTIONS_KIND in task.kinds
                yield GradingCase(n, FRACTIONS_KIND if has_fractions else kind, hidden + 1, trial=1 % trials)
            else:
                yield GradingCase(n, kind, hidden, trial=(size_number + kind_number) % trials)
    yield from scheduled
    for n in task.select_hidden_sizes(hidden):
        yield GradingCase(n, RANDOM_KIND, hidden)
        yield GradingCase(n, RANDOM_KIND, hidden + 1, trial=3 % trials)


def _generate_scheduled_cases(task: Task, stage: Stage, hidden: int) -> Iterator[GradingCase]:
    if task.schedule_count:
        few = [n for n in task.sizes if stage.count_threads(n) <= _DESCENDING_THREADS] or task.sizes[:1]
        yield GradingCase(few[-1], RANDOM_KIND, hidden, is_descending=True)
    for number in range(task.schedule_count):
        kind, most = _SCHEDULE_KINDS[number % len(_SCHEDULE_KINDS)]
        small = [n for n in task.sizes if stage.count_threads(n) <= most] or list(task.sizes[:1])
        n = small[-1 - number // len(_SCHEDULE_KINDS) % min(2, len(small))]
        yield GradingCase(n, RANDOM_KIND, hidden, f"{kind}:{number}")


class _Grader:
    """Grade one submission."""

    def __init__(self, lesson: Lesson, task: Task, text: str, seed: int) -> None:
        self._lesson, self._task, self._text, self._seed = lesson, task, text, seed
        self._stage = lesson.stage(task.stage)
        self._reference = reference_solution(lesson, task)
        self._runs = 0
        self._worst_limits: dict[tuple[str, bool], CounterLimit] = {}
        self._seen: set[tuple[int, int, str, bool, bytes]] = set()

    def grade(self) -> Judgment:
        engine, reference_engine = (
            CheckingEngine(on_print=lambda thread, text: None, orders_volatile=True),
            CheckingEngine(on_print=lambda thread, text: None),
        )
        with closing(engine), closing(reference_engine):
            engine.sources = {self._stage.file: self._text}
            engine.max_seconds = _TIME_LIMIT_S
            reference_engine.sources = {self._stage.file: self._reference}
            try:
                types = self._stage.find_types(reference_engine.build_simulated_module(self._stage.file))
            except KernelError as error:
                raise InputError(f"The reference solution of {self._task.name} fails: {error.message}") from None
            try:
                submission_types = self._stage.find_types(engine.build_simulated_module(self._stage.file))
                for launch in self._stage.launches:
                    engine.build_simulated_module(self._stage.file).kernel(launch.kernel)
            except (KernelError, InputError) as error:
                return self._describe_unrunnable(error)
            if submission_types != types:
                return self._describe_unrunnable(KernelError("The kernel's parameters differ from those of the task."))
            undefined = self._find_undefined_behavior(engine.build_simulated_module(self._stage.file))
            if undefined is not None:
                return undefined
            variables = _Variables(engine.build_simulated_module(self._stage.file))
            for case in generate_cases(self._task, self._stage, self._seed):
                failure = self._run_case(engine, reference_engine, case, types, variables)
                if failure is not None:
                    return failure
        return self._check_limits()

    def _run_case(
        self,
        engine: CheckingEngine,
        reference_engine: CheckingEngine,
        case: GradingCase,
        types: Mapping[str, np.dtype[Any]],
        variables: _Variables,
    ) -> Judgment | None:
        """Run one case; return a judgment if it fails."""
        before = self._stage.generate_inputs(case, types)
        if not self._is_new(before, case):
            return None
        variables.restore()
        counters, expressions = Counters(), ExpressionCounter()
        engine.findings.clear()
        engine.max_rounds = max(MAX_LOOP_ITERATIONS, 2 * case.n)  # one thread may process all elements
        engine.schedule = case.schedule
        engine.chooser, engine.is_descending = create_chooser(case), case.is_descending
        counted = bool(self._task.limits or self._task.requirements) and case == GradingCase(case.n, seed=case.seed)
        engine.extra_observers = (counters, expressions) if counted else ()
        self._runs += 1
        after: Mapping[str, Array] | None = None
        try:
            with limit_resources(None):
                after = self._stage.run(engine, before, case)
        except LaunchError as error:
            if not error.kind:
                return self._describe_unrunnable(error)
        except InputError as error:
            return self._describe_unrunnable(error)
        except MemoryError:
            return self._describe_unrunnable(InputError("The submission exceeds the memory limit of 1 GB."), case)
        expected = self._expected_results(reference_engine, before, case)
        wrong = None
        if after is not None:
            wrong = self._find_wrong_element(after, expected) or self._find_changed_input(before, after)
        if engine.findings or wrong is not None or after is None:
            judgment = self._describe_failure(engine, wrong, case, ended=after is None)
            described = self._stage.describe_input(before, case)
            waits = engine.chooser.long_waits if engine.chooser is not None else None
            loops = waits.loops if waits is not None else set()
            if loops:
                lines = format_lines(sorted({position.line for position in loops}))
                described += f"; other threads take longer than the iterations that the wait in {lines} counts"
            if case.is_descending and any(finding.kind == "endless" for finding in engine.findings):
                described += "; a block must not wait for blocks that may not have started"
            return replace(judgment, input=described)
        if counted:
            self._record_limits(counters, expressions, engine.build_simulated_module(self._stage.file), case.n)
        return None

    def _is_new(self, inputs: Mapping[str, Array], case: GradingCase) -> bool:
        """Return whether no earlier case of this size, trial and schedule has the same inputs."""
        digest = hashlib.sha256(b"".join(values.tobytes() for values in inputs.values())).digest()
        key = (case.n, case.trial, case.schedule, case.is_descending, digest)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _expected_results(
        self, reference_engine: CheckingEngine, before: Mapping[str, Array], case: GradingCase
    ) -> dict[str, Array]:
        if self._stage.expectations:
            return self._stage.compute_expected(before, case)
        try:
            after = self._stage.run(reference_engine, before, case)
        except LaunchError as error:
            raise InputError(f"The reference solution of {self._task.name} fails: {error.message}") from None
        return {name: after[name] for name in self._stage.outputs}

    def _find_wrong_element(self, after: Mapping[str, Array], expected: Mapping[str, Array]) -> WrongElement | None:
        for name, reference_values in expected.items():
            got = after[name].reshape(-1)
            if got.size != reference_values.size:
                raise InputError(f"{name} has {got.size} elements, but the lesson expects {reference_values.size}.")
            real = got.dtype.kind == "f"
            exact = np.asarray(reference_values, np.float64)
            bad = (
                find_wrong_elements(got, exact, self._stage.tolerance)
                if real
                else got != reference_values.astype(got.dtype)
            )
            if bad.any():
                index = int(np.argmax(bad))
                is_poisoned = self._stage.arrays[name].use == "out" and not self._stage.arrays[name].fill
                unwritten = is_poisoned and not (got[index : index + 1].view(np.uint8) ^ POISON).any()
                return WrongElement(name, index, float(got[index]), float(exact[index]), unwritten)
        return None

    def _find_changed_input(self, before: Mapping[str, Array], after: Mapping[str, Array]) -> WrongElement | None:
        for name, array in self._stage.arrays.items():
            if array.use == "in":
                changed = before[name].reshape(-1).view(np.uint8) != after[name].reshape(-1).view(np.uint8)
                if changed.any():
                    index = int(np.argmax(changed)) // before[name].itemsize
                    got, expected = (float(each.reshape(-1)[index]) for each in (after[name], before[name]))
                    return WrongElement(name, index, got, expected, unwritten=False, is_input=True)
        return None

    def _record_limits(
        self, counters: Counters, expressions: ExpressionCounter, module: SimulatedModule, n: int
    ) -> None:
        """Compare counters with the task's limits; keep the worst case of each."""
        counts: dict[str, float] = dict(collect_run_counts(counters.total()))
        counts["branches"] += expressions.branches
        counts["divergent_branches"] += expressions.divergent_branches
        counts["exchanges"] = expressions.exchanges
        counts["returned_atomics"] = sum_counters(counters.total(), RETURNED_ATOMICS)
        counts["sectors_per_request"] = counts["sectors"] / counts["requests"] if counts["requests"] else 0.0
        names = self._stage.evaluate_names(n)
        counts["shared_bytes"] = self._stage.count_shared_bytes(module, names)
        bounds = [*self._task.limits.items(), *self._task.requirements.items()]
        for number, (counter, text) in enumerate(bounds):
            is_least = number >= len(self._task.limits)
            limit = CounterLimit(counter, n, round(counts[counter], 3), evaluate_number(text, names), is_least)
            before = self._worst_limits.get((counter, is_least))
            if before is None or (
                before.is_met and (not limit.is_met or _limit_fraction(limit) >= _limit_fraction(before))
            ):
                self._worst_limits[counter, is_least] = limit

    def _check_limits(self) -> Judgment:
        limits = tuple(self._worst_limits.values())
        if self._task.modeled_limit:
            try:
                limits = (*limits, self._check_modeled_limit())
            except CapabilityError as error:
                return self._describe_unrunnable(error)
        exceeded = [limit for limit in limits if not limit.is_met]
        orders = tuple(
            case.schedule
            for case in generate_cases(self._task, self._stage, self._seed)
            if case.schedule != ROUND_ROBIN
        )
        check = Check(input=f"n up to {max(self._task.sizes)}", orders=orders)
        if exceeded:
            fault = "without what the task requires" if exceeded[0].is_least else "over a limit"
            words = f"✗ not accepted: right, but {fault}: {exceeded[0].counter.replace('_', ' ')}"
            verdict = Verdict("flawed", words, f"The result is right. {exceeded[0]}.")
            # A modeled size is not run, and too large to be stepped through.
            is_counted = exceeded[0] in self._worst_limits.values()
            hidden = zlib.crc32(f"{self._task.name} {self._seed}".encode())
            case = GradingCase(exceeded[0].n, seed=hidden) if is_counted else None
            return Judgment(self._task.name, False, verdict, check, case, None, limits, self._runs)
        verdict = decide_verdict(True, edited=True, check=check)
        return Judgment(self._task.name, True, verdict, check, limits=limits, runs=self._runs)

    def _check_modeled_limit(self) -> CounterLimit:
        """Compare the submission's modeled time with the reference solution's."""
        gpu, n = self._task.modeled_limit.get("gpu", DEFAULT_GPU), int(self._task.modeled_limit["n"])
        times = float(self._task.modeled_limit.get("times", 1.2))
        # Without nvcc: a mark must not depend on what is installed, and a compiler would read the submission unchecked.
        submission_time, reference_time = (
            model_stage(self._stage, text, GradingCase(n), gpu, nvcc=False).time_us
            for text in (self._text, self._reference)
        )
        return CounterLimit(
            f"microseconds on a modeled {gpu.upper()}", n, round(submission_time, 2), round(times * reference_time, 2)
        )

    def _describe_failure(
        self, engine: CheckingEngine, wrong: WrongElement | None, case: GradingCase, *, ended: bool
    ) -> Judgment:
        mistakes = collect_mistakes(engine.findings, self._stage.file)
        differing = (case.schedule,) if case.schedule != ROUND_ROBIN and wrong is not None else ()
        check = Check(
            mistakes=mistakes,
            diagnostics=build_diagnostics(engine.findings, self._text, Path(self._stage.file), extents=engine.extents),
            ended=ended,
            input=str(replace(case, schedule=ROUND_ROBIN)),
            differing=differing,
        )
        verdict = decide_verdict(wrong is None and not ended, edited=True, check=check)
        if verdict.kind == "flawed":
            words = f"✗ not accepted: correct on this input only by luck; {describe_mistakes(mistakes)}"
            verdict = replace(verdict, words=words)
        elif wrong is not None and not mistakes:
            verdict = replace(verdict, sentence=f"For this input, {wrong}.")
        recorded = case if case.n <= _MAX_RECORDED_SIZE else None
        return Judgment(self._task.name, False, verdict, check, recorded, wrong, runs=self._runs)

    def _find_undefined_behavior(self, module: SimulatedModule) -> Judgment | None:
        """Return a judgment if the compiler finds an operation without a defined result."""
        for launch in self._stage.launches:
            for found in module.iterate_warnings(launch.kernel):
                if found.option in _UNDEFINED:
                    path, lines = Path(self._stage.file), self._text.split("\n")
                    position = replace(found.position, file=self._stage.file)
                    diagnostics = (build_diagnostic(found.message, position, path, lines, "error"),)
                    verdict = Verdict("wrong", "✗ not accepted: undefined behavior", found.message)
                    check = Check(diagnostics=diagnostics, failure=found.message)
                    return Judgment(self._task.name, False, verdict, check, runs=self._runs)
        return None

    def _describe_unrunnable(self, error: KernelError | InputError, case: GradingCase | None = None) -> Judgment:
        what = "does not compile" if isinstance(error, CompileError) else "cannot be run"
        message = f"{error.message} {error.advice}".strip()
        position = error.position if isinstance(error, KernelError) else None
        diagnostics: tuple[Diagnostic, ...] = ()
        if position is not None and position.file in (self._stage.file, (KERNELS / self._stage.file).name):
            message = message.removeprefix(f"{position}: ")
            position_in_submission = replace(position, file=self._stage.file)
            lines = self._text.split("\n")
            diagnostics = (build_diagnostic(message, position_in_submission, Path(self._stage.file), lines, "error"),)
            message = ""
        check = Check(diagnostics=diagnostics, ended=True, failure=error.message)
        verdict = Verdict("wrong", f"✗ it {what}", message or error.message)
        return Judgment(self._task.name, False, verdict, check, case, None, runs=self._runs, failure=message)


class _Variables:
    """Initial contents of a module's variables, restored before each run."""

    def __init__(self, module: Any) -> None:
        self._memories = [module.variable(name) for name in module.variables]
        self._initial_contents = [memory.data.copy() for memory in self._memories]

    def restore(self) -> None:
        for memory, before in zip(self._memories, self._initial_contents, strict=True):
            memory.data[:] = before


def _limit_fraction(limit: CounterLimit) -> float:
    if limit.is_least:
        return limit.most / limit.counted if limit.counted else math.inf
    return limit.counted / limit.most if limit.most else math.inf if limit.counted else 0.0


def _find_parameter_names(stage: Stage, text: str, array: str) -> list[str]:
    """Return for each launch the name of the parameter that receives an array; "" if none does."""
    engine = CheckingEngine()
    engine.sources = {stage.file: text}
    with closing(engine):
        module = engine.build_simulated_module(stage.file)
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
