"""Modeled timelines of warps: when they issue on one multiprocessor, for one launch of a run."""

from __future__ import annotations

from contextlib import closing

from gpu.base.errors import InputError
from gpu.engines.modeling_engine import LONGEST_LAUNCH, ModelingEngine
from gpu.messages.kernels import KernelLaunch
from gpu.messages.timelines import LaunchSummary, RunTimelines, TimelinePattern
from gpu.patterns import find_pattern
from gpu.run.host_program import validate_inputs
from gpu.run.modeling.line_codes import collect_line_codes
from gpu.run.modeling.timing_model import bind_launch, model_host_program, to_unbound_launch
from gpu.run.request_inputs import open_inputs
from gpu.timing.gpus import find_gpu


def model_pattern_timelines(request: TimelinePattern) -> RunTimelines:
    """Model a variant's host program; return the timelines of the requested launch, or of the longest.

    Raises
    ------
    InputError
        The inputs or parameters are not valid for the pattern, or there is no such GPU or launch.
    KernelError
        A kernel does not compile, or the timing model does not support it.
    """
    pattern = find_pattern(request.pattern)
    variant = pattern.variant(request.variant)
    gpu = find_gpu(request.gpu)
    params = pattern.check(request.params)
    inputs = open_inputs(request.inputs, request.side)
    inputs = pattern.prepare_inputs(inputs, params, request.seed)
    if not variant.library:
        validate_inputs(pattern, variant, inputs, params)
    chosen = LONGEST_LAUNCH if request.launch is None else request.launch
    with closing(model_host_program(variant, inputs, params, ModelingEngine(gpu, chosen), request.sources)) as engine:
        if engine.timelines is None:
            raise InputError(f"{variant.title} has no such kernel launch here, so there are no timelines.")
        launches = tuple(
            LaunchSummary(index, launch.kernel, launch.grid, launch.block, launch.time_us)
            for index, launch in enumerate(engine.launches)
            if launch.estimate is not None
        )
        timed = engine.launches[engine.timed_launch]
        code = {} if timed.code is None else {(timed.file, timed.kernel): timed.code}
        return RunTimelines(gpu.validated, launches, engine.timed_launch, engine.timelines, collect_line_codes(code))


def model_kernel_timelines(launch: KernelLaunch, gpu: str) -> RunTimelines:
    """Model a launch of any kernel; return its timelines. Raises the errors of `timing_model.model_launch`."""
    description = find_gpu(gpu)
    bound = bind_launch(to_unbound_launch(launch), description, lines=True)
    timelines = bound.file.build_timelines(bound.name, bound.shape, bound.values)
    listed = LaunchSummary(0, launch.kernel, bound.shape.grid, bound.shape.block, timelines.time_us)
    machine = bound.file.machine_kernel(bound.name)
    code = {} if machine is None else {(bound.file.name, bound.name): machine}
    return RunTimelines(description.validated, (listed,), 0, timelines, collect_line_codes(code))
