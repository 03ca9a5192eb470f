"""Check a kernel: run it on a small input with all checkers, then in several schedules."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING, Any

from gpu.base.errors import KernelError, LaunchError
from gpu.base.paths import KERNELS
from gpu.base.schedules import ROUND_ROBIN
from gpu.declaration.pattern import Array, Inputs, Integer, Pattern, Variant
from gpu.engines.base import kernel_text
from gpu.messages.runs.pattern_runs import CheckPattern
from gpu.messages.verdicts import Check, Mistake, Remedy, collect_mistakes
from gpu.run.edge_cases.kernel_case import MULTIPROCESSOR_COUNTS, TIME_LIMIT_S, KernelCase
from gpu.run.host_program import ProgressCallback, refuse_library, validate_inputs
from gpu.run.workload import Workload

if TYPE_CHECKING:
    from gpu.base.findings import Finding
    from gpu.base.thread_names import Extents


@dataclass(frozen=True)
class SizeLimits:
    """Size limits of a small part of an input.

    Parameters
    ----------
    elements, bodies, rows, columns : int
        Largest numbers of each, by the units of a pattern's parameters. A two-dimensional input that is not an image
        has at most `columns` in both directions, so that factors still match.
    image : tuple of int
        Most rows and columns of an input image.
    points : int
        Most points along each edge of a three-dimensional grid.
    """

    elements: int
    bodies: int
    rows: int
    columns: int
    image: tuple[int, int]
    points: int

    @property
    def enlarged(self) -> SizeLimits:
        """Four times the elements of one-dimensional inputs; twice the length of each edge of the others."""
        rows, columns = self.image
        return SizeLimits(
            4 * self.elements,
            4 * self.bodies,
            2 * self.rows,
            2 * self.columns,
            (2 * rows, 2 * columns),
            2 * self.points,
        )


_CHECK_LIMITS = SizeLimits(4999, 4999, 67, 67, (45, 67), 19)
_SCHEDULE_LIMITS = SizeLimits(1025, 129, 9, 35, (13, 35), 7)
_SINGLE_THREAD_LIMITS = SizeLimits(65, 65, 9, 11, (9, 11), 4)
"""One thread takes long with the checkers, and does the same on few elements as on many."""
_LONG_RUN_LIMITS = SizeLimits(1025, 1025, 67, 67, (45, 67), 19), SizeLimits(257, 129, 9, 35, (13, 35), 7)
"""Sizes if the number of steps grows with the elements: smaller, and smaller still in other schedules."""
_MANY_STEPS = 3000

_MAX_ENLARGEMENTS = 2
"""Times that the input is enlarged while no launch has several blocks: one block cannot show races between blocks."""

_EDGE_CASE_STEPS, _MIN_EDGE_CASE_STEPS = 2, 50_000
"""Limit of the statements issued for edge cases, as a multiple of those of the checked runs, and its minimum. Without
checkers a statement takes a third of the time."""

_MAX_CHECKED_EDGE_CASES = 6
"""The most edge cases that run with checkers for edits which the small input does not execute."""

SCHEDULES = ("shuffle:1", "shuffle:2", "cached:0")
"""Schedules in which a kernel runs, in addition to the one in which it is checked."""

_PREEMPTED_SCHEDULES = ("preempt:0", "preempt:1", "preempt:2")
"""Further schedules of a kernel that decides by atomic or volatile reads what it writes by such accesses."""

_NEARBY_LINES = 3
"""Lines before and after a race in front of which a barrier is tried."""
_MAX_TRIES = 12
_ORDERING_LINE = re.compile(
    r"\s*((?:(?:__sync\w+|__threadfence\w*|__pipeline_wait\w*|\w+(?:\.|::)sync)\s*\([^;]*\)"
    r"|asm\s+volatile\s*\(\"(?:fence|wgmma\.(?:fence|commit|wait))[^\"]*\"[^\"]*(?:\"memory\")?\))\s*;)\s*(?://.*)?"
)
"""A line with no other effect than to order threads."""
_MISSING_FENCE = re.compile(r"add a __threadfence\w*\(\)")
"""The advice of a finding that names a missing fence."""


@dataclass(frozen=True)
class _CheckedRun:
    """Result of a run with the checkers.

    `unreached` are those of the given lines that no thread executed, and whether `#if` excludes each, `blocks` the most
    blocks that ran together, `steps` the number of statements that were issued, and `extents` the largest of the
    launches.
    """

    findings: list[Finding]
    correct: bool
    aborted: bool
    unreached: Mapping[int, bool] = field(default_factory=dict)
    blocks: int = 0
    steps: int = 0
    extents: Extents | None = None


def check_variant(workload: Workload, report_progress: ProgressCallback) -> tuple[list[Finding], Check]:
    """Run one variant on the simulator, on a small part of its input; return the findings and the check.

    The check also contains whether several schedules agree, and a fix for a race if one is found. If the small part
    has a single block, more of the input is used as long as that may give several; once also if no thread of the small
    part executes an edit, as a pattern may sort few elements in another kernel.

    Parameters
    ----------
    workload : Workload
        A small part of its inputs is used.
    report_progress : callable
        Called with the progress of each run.

    Raises
    ------
    InputError
        The inputs or parameters are not valid for the pattern; nothing was run.
    KernelError
        A kernel does not compile, or its launch is not valid on any GPU.
    """
    from gpu.simulator.checkers.report import build_diagnostics

    pattern, variant, sources = workload.pattern, workload.variant, workload.sources
    case, run, unreached = _search_for_findings(workload, report_progress)
    text, original = kernel_text(case.file, sources), kernel_text(case.file, {})
    limits = _choose_size_limits(pattern, variant, pattern.check(workload.params))
    smaller_case = _build_small_case(workload, limits[1])
    smaller_case = replace(smaller_case, multiprocessors=case.multiprocessors)
    others = _OtherRuns()
    if sources and not run.findings and not variant.deliberate_error:
        largest, typical = (_count_elements(pattern, each) for each in limits)
        max_steps = max(_MIN_EDGE_CASE_STEPS, _EDGE_CASE_STEPS * run.steps)
        others = _run_edge_cases(case, unreached, report_progress, largest, typical, max_steps)
    if not others.wrong_input and not run.aborted:
        others.compare_schedules(case, run, smaller_case, report_progress)

    def is_fixed_by(edited: str) -> bool:
        # The smaller case is quick; the other one shows that the fix removes the findings.
        return all(_runs_cleanly(each.with_text(edited), report_progress) for each in (smaller_case, case))

    findings = run.findings or others.findings
    mistakes = collect_mistakes(findings, case.file)
    return findings, Check(
        mistakes=mistakes,
        diagnostics=build_diagnostics(findings, text, KERNELS / case.file, extents=run.extents),
        ended=run.aborted,
        input=(others.wrong_input or others.ordered_input) if others.findings else case.description,
        orders=others.orders,
        ordered_input=smaller_case.description,
        unreached=unreached.find_lines() if not findings else (),
        left_out=unreached.find_left_out_lines() if not findings else (),
        wrong_input=others.wrong_input,
        edge_cases=others.count,
        skipped=others.skipped,
        excluded=tuple(others.excluded),
        differing=others.differing,
        remedy=find_remedy(findings, mistakes, text, is_fixed_by, original),
    )


def _search_for_findings(
    workload: Workload, report_progress: ProgressCallback
) -> tuple[KernelCase, _CheckedRun, _UnreachedEdits]:
    """Run cases until one has findings; return the last case, its run, and the edits that no case executed.

    The run is correct if all were, and has the steps of all.
    """
    variant = workload.variant
    refuse_library(variant)
    part = _choose_size_limits(workload.pattern, variant, workload.pattern.check(workload.params))[0]
    case = _build_small_case(workload, part)
    unreached = _UnreachedEdits.compare(kernel_text(case.file, {}), kernel_text(case.file, workload.sources))
    has_several_blocks = variant.is_single_thread  # a single thread cannot race with other blocks
    cases = [replace(case, multiprocessors=count) for count in MULTIPROCESSOR_COUNTS]
    enlargements = 0
    correct, steps = True, 0
    while cases:
        case = cases.pop(0)
        run = _run_checked(case, report_progress, unreached.inserted)
        if run.findings:
            break
        correct &= run.correct
        steps += run.steps
        has_several_blocks |= run.blocks > 1
        unreached.keep_inserted(run.unreached)
        unreached.remove_executed(case, report_progress)
        # A larger input does not reach what the preprocessor leaves out.
        may_reach_edit = unreached.find_lines() != unreached.find_left_out_lines()
        needs_more = not has_several_blocks or (may_reach_edit and not enlargements)
        if needs_more and not cases and enlargements < _MAX_ENLARGEMENTS:
            part, enlargements = part.enlarged, enlargements + 1
            larger_case = _build_small_case(workload, part)
            cases = [larger_case] if _find_shapes(larger_case) != _find_shapes(case) else []
    return case, replace(run, correct=correct and run.correct, steps=steps), unreached


@dataclass
class _OtherRuns:
    """Result of the runs on other inputs and in other schedules, up to the first wrong one.

    Parameters
    ----------
    count : int
        The number of edge cases with right results.
    skipped : int
        The number of edge cases that would take too long.
    excluded : list of str
        Edge cases that the pattern or variant rejects, or for which the original kernel is wrong as well.
    wrong_input : str
        The first input with a wrong result or findings, whatever the schedule; "" if there is none.
    orders, differing : tuple of str
        The other schedules in which it ran, and those of them with a wrong result.
    ordered_input : str
        The input of the findings, if one of these schedules has them.
    """

    count: int = 0
    skipped: int = 0
    excluded: list[str] = field(default_factory=list)
    wrong_input: str = ""
    findings: list[Finding] = field(default_factory=list)
    orders: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    ordered_input: str = ""

    def compare_schedules(
        self, case: KernelCase, run: _CheckedRun, smaller_case: KernelCase, report_progress: ProgressCallback
    ) -> None:
        """Run the smaller case in several schedules; `run` is the checked run of the larger one."""
        orders, wrong_schedules = _find_wrong_schedules(smaller_case, report_progress)
        # A result that is wrong in the schedule of the checked run does not depend on the schedule.
        if ROUND_ROBIN not in wrong_schedules:
            self.orders, self.differing = orders, wrong_schedules
            if wrong_schedules and not run.findings:
                from gpu.simulator.checkers.trials import select_schedule_findings  # not needed in a GPU's process

                # The checkers may find the cause in the orders that show it.
                for schedule in wrong_schedules:
                    found = _find_schedule_findings(schedule, smaller_case, report_progress)
                    self.findings += select_schedule_findings(found, self.findings, schedule)
                self.ordered_input = smaller_case.description
        elif not run.findings:
            self.wrong_input = smaller_case.description or "a small part of the input"
        if not self.wrong_input and not run.findings and not run.correct:
            self.wrong_input = case.description or "a part of the input"


def _run_edge_cases(
    case: KernelCase,
    unreached: _UnreachedEdits,
    report_progress: ProgressCallback,
    largest: int,
    typical: int,
    max_steps: int,
) -> _OtherRuns:
    """Run a case's kernel on edge cases; one that executes an edit that was not executed before runs with checkers.

    So do the largest ones that execute an edit which only edge cases execute: the first may have a single warp.
    """
    from gpu.run.edge_cases.edge_case_run import run_edge_cases  # not needed in a GPU's process

    result = _OtherRuns()
    only_here = replace(unreached)
    executing: list[tuple[str, KernelCase]] = []
    for run in run_edge_cases(case, report_progress, largest, typical, max_steps):
        if run.case is None or run.engine is None:
            if run.skipped:
                result.skipped += 1
            else:
                result.excluded.append(run.name)
            continue
        if not run.correct:
            result.wrong_input, result.findings = run.name, list(run.findings)
            return result
        result.count += 1
        if not run.engine.blocks:
            continue  # the host program has launched nothing so far, for an empty input
        still_unreached = run.engine.find_unreached_lines(case.file, unreached.inserted, case.kernels)
        executed_removed = unreached.remove_executed(run.case, report_progress)
        if executed_removed or len(still_unreached) < len(unreached.inserted):
            checked = _run_checked(run.case, report_progress)
            if checked.findings:
                result.wrong_input, result.findings = run.name, checked.findings
                return result
            unreached.keep_inserted(still_unreached)
        if only_here.inserted or only_here.removed:
            executing.append((run.name, run.case))
    result.wrong_input, result.findings = _check_largest(only_here, executing, report_progress)
    return result


def _check_largest(
    edits: _UnreachedEdits, cases: Sequence[tuple[str, KernelCase]], report_progress: ProgressCallback
) -> tuple[str, list[Finding]]:
    """Run the largest cases that execute an edit with the checkers; return the name and findings of one, "" for none.

    Several, as a race may depend on the values.
    """
    largest = sorted(cases, key=lambda each: -_count_bytes(each[1]))[:_MAX_CHECKED_EDGE_CASES]
    for name, case in largest:
        if edits.are_executed(case, report_progress):
            findings = _run_checked(case, report_progress).findings
            if findings:
                return name, findings
    return "", []


def _count_bytes(case: KernelCase) -> int:
    return sum(values.nbytes for values in case.inputs.values())


def _count_elements(pattern: Pattern, limits: SizeLimits) -> int:
    return limits.bodies if pattern.size is not None and pattern.size.unit == "bodies" else limits.elements


def _find_shapes(case: KernelCase) -> dict[str, tuple[int, ...]]:
    return {name: values.shape for name, values in case.inputs.items()}


def execute_check_request(request: CheckPattern, report_progress: ProgressCallback) -> Check:
    """Execute a CheckPattern request; raises the errors of `check_variant`."""
    return check_variant(Workload.open(request), report_progress)[1]


def limit_params(
    pattern: Pattern, params: Mapping[str, Any], size_limits: SizeLimits = _CHECK_LIMITS
) -> dict[str, Any]:
    """Return the parameters with sizes limited to a small part."""
    sizes = {
        "elements": size_limits.elements,
        "bodies": size_limits.bodies,
        "rows": size_limits.rows,
        "columns": size_limits.columns,
        "points": size_limits.points,
    }
    limits = {
        parameter.name: sizes[parameter.unit]
        for parameter in pattern.parameters
        if isinstance(parameter, Integer) and parameter.unit in sizes
    }
    return {name: min(value, limits[name]) if name in limits else value for name, value in params.items()}


def find_remedy(
    findings: Sequence[Finding],
    mistakes: Sequence[Mistake],
    text: str,
    is_fixed_by: Callable[[str], bool],
    original: str = "",
) -> Remedy | None:
    """Return an inserted line that removes all findings, if they are races only and one such line is found.

    Lines removed from `original` are tried first, then a barrier or the missing fence near the racing lines.

    Parameters
    ----------
    mistakes : sequence of Mistake
        The findings' kinds and lines.
    text : str
        The edited kernel file.
    is_fixed_by : callable
        Returns whether a text has no findings and gives a correct result.
    original : str
        The file before the edits; "" if there is none.
    """
    if not mistakes or {mistake.kind for mistake in mistakes} != {"race"}:
        return None
    lines = text.split("\n")
    candidates = _find_removed_ordering_lines(original.split("\n"), lines)
    statement = _find_missing_statement(findings)
    around: Iterable[tuple[int, str]] = (
        (number, lines[number - 1][: -len(lines[number - 1].lstrip())] + statement)
        for number in _find_barrier_lines({line for mistake in mistakes for line in mistake.lines}, len(lines))
        if lines[number - 1].strip() and statement
    )
    for number, inserted in (*candidates, *around):
        if is_fixed_by("\n".join([*lines[: number - 1], inserted, *lines[number - 1 :]])):
            return Remedy(f"Insert {inserted.strip()} before line {number}", number, inserted)
    return None


def _find_missing_statement(findings: Sequence[Finding]) -> str:
    """Return the barrier or fence that findings name as missing; "" if they name none, or different fences."""
    fences = {match[0] for finding in findings for match in _MISSING_FENCE.finditer(finding.message)}
    if len(fences) == 1 and all(_MISSING_FENCE.search(finding.message) for finding in findings):
        return fences.pop().removeprefix("add a ") + ";"
    if all("__syncwarp()" in finding.message for finding in findings):
        return "__syncwarp();"
    return "__syncthreads();" if any("__sync" in finding.message for finding in findings) else ""


def _find_removed_ordering_lines(original: Sequence[str], lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield removed lines that only order threads, each with the number of the line that it was before."""
    for _, begin, end, first, last in SequenceMatcher(None, original, lines, autojunk=False).get_opcodes():
        for index in range(begin, end):
            if original[index : index + 1] == lines[first + index - begin : first + index - begin + 1]:
                continue
            if match := _ORDERING_LINE.fullmatch(original[index]):
                indent = original[index][: -len(original[index].lstrip())]
                yield min(first + index - begin, last) + 1, indent + match[1]


def _find_barrier_lines(racing_lines: Collection[int], last: int) -> Iterator[int]:
    """Yield the lines in front of which a barrier may help, those after the race first."""
    first, end = min(racing_lines, default=1), max(racing_lines, default=0)
    after, before = range(end + 1, end + 1 + _NEARBY_LINES), range(first - 1, first - 1 - _NEARBY_LINES, -1)
    places = (line for line in (*after, *range(end, first - 1, -1), *before) if 1 <= line <= last)
    yield from islice(places, _MAX_TRIES)


@dataclass
class _UnreachedEdits:
    """Edits that no thread has executed so far.

    Parameters
    ----------
    original : str
        The text before the edits.
    inserted : dict of int to (int, int)
        Lines of the edited text, each with the first and last changed column, from 1.
    removed : dict of int to (int, int)
        Lines of the original, likewise.
    successors : dict of int to int
        For each line of the original the line that now has its place.
    compiled : set of int
        Lines of the edited text with an edit that the preprocessor did not exclude in some case.
    """

    original: str
    inserted: dict[int, tuple[int, int]]
    removed: dict[int, tuple[int, int]]
    successors: dict[int, int]
    compiled: set[int] = field(default_factory=set)

    @classmethod
    def compare(cls, original: str, text: str) -> _UnreachedEdits:
        """Return all edits of a text."""
        old, new = original.split("\n"), text.split("\n")
        edits = cls(original, {}, {}, {})
        for tag, begin, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag == "equal":
                continue
            edits.inserted |= {index + 1: (1, len(new[index])) for index in range(first, last)}
            edits.removed |= {index + 1: (1, len(old[index])) for index in range(begin, end)}
            edits.successors |= {
                index + 1: min(first + index - begin, max(last - 1, first)) + 1 for index in range(begin, end)
            }
            if end - begin == last - first:
                for here, there in zip(range(begin, end), range(first, last), strict=True):
                    edits.removed[here + 1], edits.inserted[there + 1] = _find_changed_columns(old[here], new[there])
        return edits

    def keep_inserted(self, unreached: Mapping[int, bool]) -> None:
        """Remove the inserted lines that were executed in a case, all except the unreached ones."""
        self.inserted = _select_lines(self.inserted, unreached)
        self.compiled |= {line for line, is_left_out in unreached.items() if not is_left_out}

    def remove_executed(self, case: KernelCase, report_progress: ProgressCallback) -> bool:
        """Remove the removed lines that the original executes in a case; return whether there are any.

        A removed line counts as executed only if the original executes it.
        """
        if not self.removed:
            return False
        original = case.with_text(self.original)
        unreached = _find_unreached_lines(original, report_progress, self.removed)
        before, self.removed = self.removed, _select_lines(self.removed, unreached)
        self.compiled |= {self.successors[line] for line, is_left_out in unreached.items() if not is_left_out}
        return len(before) > len(self.removed)

    def are_executed(self, case: KernelCase, report_progress: ProgressCallback) -> bool:
        """Return whether a case executes one of the edits."""
        unreached = _find_unreached_lines(case, report_progress, self.inserted) if self.inserted else {}
        return len(unreached) < len(self.inserted) or replace(self).remove_executed(case, report_progress)

    def find_lines(self) -> tuple[int, ...]:
        """Return the lines of the edited text at which there is an edit that no thread has executed."""
        return tuple(sorted({*self.inserted, *(self.successors[line] for line in self.removed)}))

    def find_left_out_lines(self) -> tuple[int, ...]:
        """Return those of these lines whose edit the preprocessor excluded in all cases."""
        return tuple(line for line in self.find_lines() if line not in self.compiled)


def _select_lines(lines: Mapping[int, tuple[int, int]], selected: Collection[int]) -> dict[int, tuple[int, int]]:
    return {line: columns for line, columns in lines.items() if line in selected}


def _find_changed_columns(old: str, new: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the first and last changed column of two versions of a line, from 1; of an insertion, those around it."""
    shorter = min(len(old), len(new))
    start = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    end = next((index for index in range(shorter - start) if old[-1 - index] != new[-1 - index]), shorter - start)
    old_columns, new_columns = (
        (min(start + 1, len(line) - end), max(start + 1, len(line) - end)) for line in (old, new)
    )
    return old_columns, new_columns


def _build_small_case(workload: Workload, size_limits: SizeLimits) -> KernelCase:
    """Return the case of a variant on a small part of its input."""
    pattern = workload.pattern
    params = limit_params(pattern, pattern.check(workload.params), size_limits)
    if pattern.generates_input(params):
        workload = replace(workload, inputs={})  # a smaller generated input is more typical than a part of a large one
    inputs = limit_inputs(workload, params, size_limits)
    return KernelCase(pattern, workload.variant, inputs, params, workload.sources, workload.seed)


def _choose_size_limits(pattern: Pattern, variant: Variant, params: Mapping[str, Any]) -> tuple[SizeLimits, SizeLimits]:
    """Return the parts of the input for the check and for the runs in other schedules."""
    if variant.is_single_thread:
        return _SINGLE_THREAD_LIMITS, _SINGLE_THREAD_LIMITS
    if variant.checked_side is not None:
        side = variant.checked_side(params)
        return replace(_CHECK_LIMITS, rows=side, columns=side), _SCHEDULE_LIMITS
    n = pattern.count_elements(limit_params(pattern, params))
    book = None if n is None else pattern.textbook_of(variant, params, n)
    return _LONG_RUN_LIMITS if book is not None and book.steps > _MANY_STEPS else (_CHECK_LIMITS, _SCHEDULE_LIMITS)


def _run_checked(case: KernelCase, report_progress: ProgressCallback, lines: Collection[int] = ()) -> _CheckedRun:
    """Run a case with the checkers; also determine which of the given lines of the variant's file were executed."""
    from gpu.engines.checking_engine import CheckingEngine  # not needed in a GPU's process

    validate_inputs(case.pattern, case.variant, case.inputs, case.params)
    with closing(CheckingEngine()) as engine:
        engine.max_seconds = TIME_LIMIT_S
        try:
            correct = case.runs_correctly(engine, report_progress)
        except LaunchError:
            if not engine.findings:
                raise
            return _CheckedRun(engine.findings, correct=False, aborted=True, extents=engine.extents)
        unreached = engine.find_unreached_lines(case.file, lines, case.kernels) if lines else {}
        return _CheckedRun(
            engine.findings,
            correct,
            aborted=False,
            unreached=unreached,
            blocks=engine.blocks,
            steps=engine.steps,
            extents=engine.extents,
        )


def _runs_cleanly(case: KernelCase, report_progress: ProgressCallback) -> bool:
    """Return whether a case has no findings and a correct result."""
    try:
        run = _run_checked(case, report_progress)
    except KernelError:
        return False
    return run.correct and not run.findings


def _find_unreached_lines(
    case: KernelCase, report_progress: ProgressCallback, lines: Collection[int]
) -> dict[int, bool]:
    """Return those of the given lines of a case's file that no thread executes, and whether `#if` excludes each."""
    from gpu.engines.checking_engine import CheckingEngine

    with closing(CheckingEngine(checks=False)) as engine:
        engine.max_seconds = TIME_LIMIT_S
        case.runs_correctly(engine, report_progress)
        return engine.find_unreached_lines(case.file, lines, case.kernels)


def _find_wrong_schedules(
    case: KernelCase, report_progress: ProgressCallback
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the other schedules in which a case runs, and those in which its result is wrong, also "round-robin"."""
    from gpu.engines.simulator import SimulatorEngine

    wrong: list[str] = []
    orders: tuple[str, ...] = SCHEDULES
    with closing(SimulatorEngine("lockstep")) as engine:

        def is_wrong(schedule: str) -> bool:
            engine.schedule = schedule
            try:
                return not case.runs_correctly(engine, report_progress)
            except LaunchError:
                return True

        wrong += [schedule for schedule in (ROUND_ROBIN, *SCHEDULES) if is_wrong(schedule)]
        if engine.decides_writes:
            orders += _PREEMPTED_SCHEDULES
            wrong += [schedule for schedule in _PREEMPTED_SCHEDULES if is_wrong(schedule)]
    return orders, tuple(wrong)


def _find_schedule_findings(schedule: str, case: KernelCase, report_progress: ProgressCallback) -> list[Finding]:
    """Return the findings of a case that runs in a schedule."""
    from gpu.engines.checking_engine import CheckingEngine

    with closing(CheckingEngine()) as engine:
        engine.max_seconds, engine.schedule = TIME_LIMIT_S, schedule
        with suppress(LaunchError):
            case.runs_correctly(engine, report_progress)
        return engine.findings


def limit_inputs(workload: Workload, params: Mapping[str, Any], size_limits: SizeLimits) -> Inputs:
    """Return inputs for a check: the first elements of one-dimensional arrays, a corner of the others.

    Parameters
    ----------
    params : mapping
        The parameters of the check.
    size_limits : SizeLimits
        The most elements, rows and columns.
    """
    pattern, inputs = workload.pattern, workload.inputs
    rows, columns = (
        size_limits.image if pattern.input_kind(params) == "image" else (size_limits.columns, size_limits.columns)
    )

    def cut_corner(values: Array) -> Array:
        if values.ndim >= 2:
            return values[:rows, :columns]
        return values[: size_limits.elements] if values.ndim else values

    if inputs and pattern.crop_input is not None:
        part = pattern.crop_input(inputs, pattern.check(workload.params), params)
    else:
        part = {name: cut_corner(values) for name, values in inputs.items()}
    return pattern.prepare_inputs(part, params, workload.seed)
