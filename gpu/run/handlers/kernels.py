"""Handlers of requests about the user's kernels and programs."""

from __future__ import annotations

from pathlib import Path

from gpu.base.errors import Diagnostic
from gpu.base.paths import KERNELS
from gpu.messages.kernels import (
    CheckSource,
    CountKernel,
    DescribeKernels,
    KernelCounts,
    KernelResult,
    RunKernel,
    Signature,
)
from gpu.messages.programs import SCRIPT_SUFFIX, ProgramEnd, RunProgram
from gpu.run.handlers.registry import RequestContext, handles


@handles(CheckSource)
def _check_source(context: RequestContext, request: CheckSource) -> tuple[Diagnostic, ...]:
    if request.file.endswith(SCRIPT_SUFFIX):
        from gpu.hosts.script import diagnose_script

        return diagnose_script(request.text)
    from gpu.simulator.frontend.editor_diagnostics import diagnose

    return diagnose(request.text, KERNELS / request.file, request.defines)


@handles(DescribeKernels)
def _describe_kernels(context: RequestContext, request: DescribeKernels) -> tuple[Signature, ...]:
    from gpu.kernel.signatures import read_signatures

    return read_signatures(request.text, Path(request.file), request.defines, request.instances, request.include_dirs)


@handles(RunKernel)
def _run_kernel(context: RequestContext, request: RunKernel) -> KernelResult:
    from gpu.run import kernel_launch

    arrays, simulation = kernel_launch.run_kernel(request.launch)
    return KernelResult(context.folder.put_all(arrays), simulation)


@handles(CountKernel)
def _count_kernel(context: RequestContext, request: CountKernel) -> KernelCounts:
    from gpu.run import kernel_launch

    arrays, counted_launch = kernel_launch.count_kernel(request.launch)
    return KernelCounts(context.folder.put_all(arrays), counted_launch)


@handles(RunProgram)
def _run_program(context: RequestContext, request: RunProgram) -> ProgramEnd:
    from gpu.run.programs import child_runner

    return child_runner.run_program(request, context.report_progress)
