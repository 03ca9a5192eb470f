"""Execute the window's requests to the timing model; return figures as plain data, with the limiting resource."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from gpu.declaration.pattern import Inputs, Params, Pattern, Progress, Variant
from gpu.engines.modeling_engine import ModeledLaunch
from gpu.messages.modeled_time import (
    LIMITS,
    KernelTime,
    ModeledTime,
    ModelKernel,
    ModelPattern,
    TimeExplanation,
    describe_least_time,
)
from gpu.patterns import find_pattern
from gpu.run.host_program import ProgressCallback, validate_inputs
from gpu.run.kernel_launch import count_kernel
from gpu.run.modeling.line_codes import collect_line_codes
from gpu.run.modeling.timing_model import ModeledRun, model_launch, model_pattern, to_unbound_launch
from gpu.run.request_inputs import open_inputs
from gpu.run.work_count import count_pattern
from gpu.run.workload import Workload
from gpu.timing.gpus import find_gpu

_RESOURCE_NAMES = {"memory": "DRAM", "last cache": "L2"}
_ON_CHIP = "first cache and shared memory"
"""L1 and shared memory are one unit: in each cycle it processes an L1 line or a pass over shared memory."""


def execute_model_pattern(request: ModelPattern, report_progress: ProgressCallback) -> ModeledTime:
    """Model a variant's host program; raises the errors of `gpu.run.modeling.timing_model.model_pattern`."""
    pattern = find_pattern(request.pattern)
    variant = pattern.variant(request.variant)
    params = pattern.check(request.params)
    inputs = _prepare_cached_inputs(pattern, request, params)
    validate_inputs(pattern, variant, inputs, params)
    cost = pattern.cost(inputs, params)
    gpu = request.gpu_scaling.scale_gpu(find_gpu(request.gpu))
    report_progress(Progress(None, describe_least_time(gpu, cost.bytes_read, cost.bytes_written)))
    run = model_pattern(
        variant, inputs, params, request.gpu, request.sources, pattern=pattern.name, gpu_scaling=request.gpu_scaling
    )
    operations = float(cost.flops)
    if request.count_operations and not operations:
        operations = _estimate_operations(pattern, variant, inputs, request)
    work = pattern.work(inputs, params)
    return replace(
        summarize_run(run, operations),
        least_bytes=float(cost.bytes_read + cost.bytes_written),
        work=work.amount / {"M": 1e6, "G": 1e9}[work.prefix],
    )


def execute_model_kernel(request: ModelKernel, report_progress: ProgressCallback) -> ModeledTime:
    """Model a launch of any kernel; raises the errors of `gpu.run.modeling.timing_model.model_launch`."""
    launch, gpu = to_unbound_launch(request.launch), request.gpu_scaling.scale_gpu(find_gpu(request.gpu))
    report_progress(Progress(None, describe_least_time(gpu, blocks=launch.shape.blocks)))
    run = model_launch(launch, gpu)
    operations = float(count_kernel(request.launch)[1].counts.operations) if request.count_operations else 0.0
    return summarize_run(run, operations)


_cached_inputs: dict[Hashable, Inputs] = {}


def _prepare_cached_inputs(pattern: Pattern, request: ModelPattern, params: Params) -> Inputs:
    """Return a variant's inputs. The last ones are cached: a ladder's variants are modeled one after the other."""
    values = tuple(
        (name, value.tobytes() if isinstance(value, np.ndarray) else value) for name, value in params.items()
    )
    paths = tuple((name, handle.path) for name, handle in request.inputs.items())
    key = pattern.name, values, paths, request.seed, request.side
    if key not in _cached_inputs:
        _cached_inputs.clear()
        _cached_inputs[key] = pattern.prepare_inputs(open_inputs(request.inputs, request.side), params, request.seed)
    return _cached_inputs[key]


def _estimate_operations(pattern: Pattern, variant: Variant, inputs: Inputs, request: ModelPattern) -> float:
    """Return the number of operations on data, scaled from a count per element on a small part of the input."""
    workload = Workload(pattern, variant, inputs, request.params, request.sources, request.seed)
    counts = count_pattern(workload, lambda _: None)  # the bound is the only progress that a request reports
    elements = max((array.size for name, array in inputs.items() if name in ("image", "values", "text")), default=0)
    return counts.per_element(counts.operations) * elements


def summarize_run(run: ModeledRun, operations: float) -> ModeledTime:
    """Return a run's figures as plain data.

    Parameters
    ----------
    operations : float
        Operations on data.
    """
    estimates = [launch.estimate for launch in run.launches if launch.estimate is not None]
    limits = dict.fromkeys(LIMITS, 0.0)
    for launch in run.launches:
        for name, amount in _split_limits(launch, run).items():
            limits[name] += amount
    bound_by = _RESOURCE_NAMES.get(run.bound_by, run.bound_by)
    if bound_by == _ON_CHIP:
        bound_by = max("L1", "shared", key=lambda name: limits[name])
    kernels = _group_launches(run.launches)
    dram_bytes = sum(estimate.dram_bytes for estimate in estimates)
    instructions = sum(estimate.instructions for estimate in estimates)
    longest = run.longest_launch.estimate if run.longest_launch is not None else None
    loads_in_flight = longest.loads_in_flight if longest is not None else None
    explanation = TimeExplanation(
        limits=limits,
        bound_by=bound_by,
        body_us=max(run.time_us - limits["launch"], 0.0),
        launches=len(run.launches),
        loads=loads_in_flight.mean_count if loads_in_flight else 0.0,
        load_bytes=loads_in_flight.bytes_per_load if loads_in_flight else 0.0,
        load_us=_sum_load_us(run),
        warps=longest.occupancy.warps if longest else 0,
        max_warps=run.gpu.warps,
        dram_bytes=dram_bytes,
        instructions=instructions,
    )
    return ModeledTime(
        gpu=run.gpu.key,
        name=run.gpu.name,
        validated=run.gpu.validated,
        time_us=run.time_us,
        limits=limits,
        bound_by=bound_by,
        reason=explanation.reason,
        kernels=kernels,
        launches=len(run.launches),
        instructions=instructions,
        dram_bytes=dram_bytes,
        l2_bytes=32 * sum(estimate.l2_sectors for estimate in estimates),
        source=run.source,
        error=run.error,
        all_executed=run.all_ran,
        is_complete=run.is_complete,
        operations=operations,
        lines=collect_line_codes(run.machine_kernels),
    )


def _split_limits(launch: ModeledLaunch, run: ModeledRun) -> dict[str, float]:
    """Return a launch's limits by their displayed names."""
    estimate = launch.estimate
    if estimate is None:
        return {"launch": launch.time_us}
    limits = {_RESOURCE_NAMES.get(name, name): amount for name, amount in estimate.breakdown.items()}
    on_chip = limits.pop(_ON_CHIP, 0.0)
    active = min(estimate.total_blocks, run.gpu.multiprocessors)
    shared = min(on_chip, estimate.shared_passes / max(active, 1) / run.gpu.clock_ghz / 1e3)
    return {**limits, "shared": shared, "L1": on_chip - shared}


def _sum_load_us(run: ModeledRun) -> float:
    """Return how long a multiprocessor's warps wait for memory in all launches, wave by wave."""
    total = 0.0
    for launch in run.launches:
        if (estimate := launch.estimate) is not None:
            resident_blocks = max(1, estimate.occupancy.blocks * run.gpu.multiprocessors)
            waves = -(-estimate.total_blocks // resident_blocks)
            total += waves * estimate.loads_in_flight.waits_per_warp * run.gpu.memory_cycles / run.gpu.clock_ghz / 1e3
    return total


def _group_launches(launches: Sequence[ModeledLaunch]) -> tuple[KernelTime, ...]:
    """Return the launches grouped by kernel and block size, the longest group first."""
    groups: dict[tuple[str, tuple[int, ...]], list[ModeledLaunch]] = {}
    for launch in launches:
        if launch.estimate is not None:
            groups.setdefault((launch.kernel, launch.block), []).append(launch)
    times = []
    for (kernel, block), group in groups.items():
        first = max(group, key=lambda launch: launch.time_us)
        estimate = first.estimate
        assert estimate is not None
        times.append(
            KernelTime(
                kernel,
                first.grid,
                block,
                len(group),
                sum(launch.time_us for launch in group),
                estimate.registers,
                estimate.shared_bytes,
                estimate.occupancy.blocks,
                estimate.occupancy.warps,
                estimate.occupancy.limiting_resource,
                first.code.spilled_bytes if first.code is not None else 0,
            )
        )
    return tuple(sorted(times, key=lambda each: -each.time_us))
