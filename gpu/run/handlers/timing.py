"""Handlers of requests for modeled times and timelines."""

from __future__ import annotations

from gpu.messages.modeled_time import ModeledTime, ModelKernel, ModelPattern
from gpu.messages.shared_arrays import SharedFolder
from gpu.messages.timelines import RunTimelines, TimelineKernel, TimelinePattern, TimelineResult
from gpu.run.handlers.registry import RequestContext, handles


@handles(ModelPattern)
def _model_pattern(context: RequestContext, request: ModelPattern) -> ModeledTime:
    from gpu.run.modeling.timing_model_requests import execute_model_pattern

    return execute_model_pattern(request, context.report_progress)


@handles(ModelKernel)
def _model_kernel(context: RequestContext, request: ModelKernel) -> ModeledTime:
    from gpu.run.modeling.timing_model_requests import execute_model_kernel

    return execute_model_kernel(request, context.report_progress)


@handles(TimelinePattern)
def _model_pattern_timelines(context: RequestContext, request: TimelinePattern) -> TimelineResult:
    from gpu.run.modeling import timelines

    return _share_timelines(timelines.model_pattern_timelines(request), context.folder)


@handles(TimelineKernel)
def _model_kernel_timelines(context: RequestContext, request: TimelineKernel) -> TimelineResult:
    from gpu.run.modeling import timelines

    return _share_timelines(timelines.model_kernel_timelines(request.kernel, request.gpu), context.folder)


def _share_timelines(timelines: RunTimelines, folder: SharedFolder) -> TimelineResult:
    bare, arrays = timelines.split_spans()
    return TimelineResult(folder.put_all(arrays), bare)
