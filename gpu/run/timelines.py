"""When the warps of a run would issue on a GPU: one of its launches, on one multiprocessor."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from gpu.engines.modeling import LONGEST, ModelingEngine
from gpu.errors import InputError
from gpu.messages.kernels import KernelLaunch
from gpu.messages.requests import TimelinePattern
from gpu.messages.timelines import ListedLaunch, RunTimelines
from gpu.patterns import find_pattern
from gpu.run.drive import accept
from gpu.run.line_codes import line_codes
from gpu.run.model import bound_launch, modeled_program, refuse_textures
from gpu.run.sized import opened
from gpu.timing.gpus import find_gpu


def pattern_timelines(request: TimelinePattern) -> RunTimelines:
    """Model a variant's host program, and keep the timelines of the launch that is asked for.

    Raises
    ------
    InputError
        Where inputs and parameters are not ones that the pattern takes, or there is no such GPU or launch.
    KernelError
        Where a kernel does not compile, or does what the model does not follow.
    """
    pattern = find_pattern(request.pattern)
    variant = pattern.variant(request.variant)
    gpu = find_gpu(request.gpu)
    params = pattern.check(request.params)
    inputs = opened(request.inputs, request.side)
    inputs = pattern.inputs(inputs, params, request.seed)
    if not variant.library:
        accept(pattern, variant, inputs, params)
    wanted = LONGEST if request.launch is None else request.launch
    with closing(modeled_program(variant, inputs, params, ModelingEngine(gpu, wanted), request.sources)) as engine:
        if engine.timelines is None:
            raise InputError(f"{variant.title} launches no such kernel here: there is nothing to be timed.")
        launches = tuple(
            ListedLaunch(place, each.kernel, each.grid, each.block, each.time_us)
            for place, each in enumerate(engine.launches)
            if each.estimate is not None
        )
        timed = engine.launches[engine.timed_launch]
        code = {} if timed.code is None else {(timed.file, timed.kernel): timed.code}
        return RunTimelines(gpu.validated, launches, engine.timed_launch, engine.timelines, line_codes(code))


def kernel_timelines(launch: KernelLaunch, gpu: str) -> RunTimelines:
    """Model a launch of any kernel, and keep its timelines; errors as of `gpu.run.model.model_kernel`."""
    refuse_textures(launch)
    described = find_gpu(gpu)
    bound = bound_launch(
        Path(launch.file), launch.text, launch.kernel, launch.grid, launch.block, launch.arguments, described,
        shared_bytes=launch.shared_bytes, defines=launch.defines, constants=launch.constants, lines=True,
        include_dirs=tuple(map(Path, launch.include_dirs)),
    )  # fmt: skip
    found = bound.file.timelines(bound.name, bound.shape, bound.values)
    listed = ListedLaunch(0, launch.kernel, bound.shape.grid, bound.shape.block, found.time_us)
    machine = bound.file.machine_kernel(bound.name)
    code = {} if machine is None else {(bound.file.name, bound.name): machine}
    return RunTimelines(described.validated, (listed,), 0, found, line_codes(code))
