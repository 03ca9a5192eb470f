"""Handlers of requests to run, check and count variants of patterns."""

from __future__ import annotations

from gpu.declaration.presentation import ATOMICS
from gpu.messages.run_counts import RunCounts
from gpu.messages.runs.atomics import AtomicsStudy, StudyAtomics
from gpu.messages.runs.pattern_runs import CheckPattern, CountPattern, RunPattern, RunResult
from gpu.messages.runs.writer import FindWriter, WrittenElement
from gpu.messages.verdicts import Check
from gpu.patterns import pattern_with_lesson
from gpu.run.frames import Frames
from gpu.run.handlers.registry import RequestContext, handles
from gpu.run.kernel_check import execute_check_request
from gpu.run.pattern_run import run_pattern
from gpu.run.request_inputs import open_inputs
from gpu.run.work_count import execute_count_request
from gpu.run.workload import Workload


@handles(RunPattern)
def _run_variant(context: RequestContext, request: RunPattern) -> RunResult:
    outcome = run_pattern(
        context.engine,
        Workload.open(request, request.side),
        context.report_progress,
        with_reference=request.verify,
        frames=Frames() if request.frames else None,
    )
    return RunResult(context.folder.put_all({**outcome.outputs, **outcome.presented_arrays}), outcome.report)


@handles(CheckPattern)
def _check_pattern(context: RequestContext, request: CheckPattern) -> Check:
    return execute_check_request(request, context.report_progress)


@handles(CountPattern)
def _count_pattern(context: RequestContext, request: CountPattern) -> RunCounts:
    return execute_count_request(request, context.report_progress)


@handles(FindWriter)
def _find_writer(context: RequestContext, request: FindWriter) -> WrittenElement:
    from gpu.run import writer_search

    return writer_search.find_writer(request, context.report_progress)


@handles(StudyAtomics)
def _study_atomics(context: RequestContext, request: StudyAtomics) -> AtomicsStudy:
    from gpu.run import atomics

    return atomics.study_atomics(
        pattern_with_lesson(ATOMICS),
        open_inputs(request.inputs, 0),
        request.params,
        context.report_progress,
        seed=request.seed,
    )
