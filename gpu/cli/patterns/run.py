"""The command `run`: run one variant of a pattern in this process, without the window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpu import engines
from gpu.base.errors import InputError, KernelError
from gpu.cli import report as cli_text
from gpu.cli.patterns.cluster_options import ClusterRunOptions
from gpu.cli.patterns.kernel_check import KernelCheck, check_kernel
from gpu.cli.patterns.run_options import RunOptions
from gpu.declaration.pattern import Array, Inputs, Params, Pattern, Variant
from gpu.declaration.presentation import CountsPresentation
from gpu.declaration.roles import FROM_FILE, Role
from gpu.engines.base import Device
from gpu.files import arrays as array_files
from gpu.files import images
from gpu.files import text as text_files
from gpu.messages.run_counts import RunCounts
from gpu.messages.runs.distributed_run import DistributedRun
from gpu.messages.runs.pattern_runs import Report
from gpu.messages.verdicts import Verdict
from gpu.run import chart, export
from gpu.run.pattern_run import Outcome, run_pattern
from gpu.run.workload import Workload

RunVariant = Callable[[Workload], tuple[Outcome, DistributedRun | None]]


def run(options: RunOptions) -> bool:
    """Run a variant, print its report and save the result; return whether the verdict is good.

    An edited kernel file is checked first: findings make the verdict bad, and an error that aborts the check prevents
    the run.
    """
    # Errors in the input are reported before an engine starts.
    param_values = _parameter_values(options.pattern, options.texts, options.input_file, options.output_file)
    if options.cluster is not None:
        return _run_on_cluster(options, param_values, options.cluster)
    with closing(engines.create_engine(options.engine, options.executor, options.schedule)) as engine:

        def run_on_engine(workload: Workload) -> tuple[Outcome, None]:
            return run_pattern(engine, workload, lambda progress: None), None

        return _run_and_report(run_on_engine, engine.device, options, param_values)


def _run_on_cluster(options: RunOptions, param_values: Params, cluster: ClusterRunOptions) -> bool:
    from gpu.cli.patterns.cluster import ClusterRunner
    from gpu.distributed.cluster.dask_cluster import open_cluster
    from gpu.distributed.cluster.dask_import import load_dask

    options.pattern.require_distributed()  # raises InputError for an unsupported pattern, even where Dask is missing
    load_dask()
    with open_cluster(cluster.settings) as workers:
        runner = ClusterRunner(workers, cluster)
        return _run_and_report(runner, runner.device, options, param_values)


def _run_and_report(run_variant: RunVariant, device: Device, options: RunOptions, param_values: Params) -> bool:
    """Run a variant by `run_variant`, print its report and save the result; return whether the verdict is good."""
    variant, output_file, seed = options.variant, options.output_file, options.seed
    pattern = options.pattern.with_default_size(variant, device)
    inputs, params, about = _read_inputs_and_params(pattern, param_values, options.input_file, output_file, seed)
    workload = Workload(pattern, variant, inputs, params, seed=seed)
    kernel_check = check_kernel(workload, options.source_file)
    if kernel_check.aborted:
        return report_refusal(pattern, variant, kernel_check, as_json=options.as_json)
    workload = replace(workload, sources=kernel_check.sources)
    outcome, distributed = run_variant(workload)
    if output_file:
        _save_result(output_file, pattern, inputs, outcome)
    verdict = kernel_check.verdict(outcome.report.verified, variant)
    counts = count_work(outcome.report, workload)
    if options.as_json:
        cluster_data = distributed.data() if distributed is not None else {}
        data = {**cli_text.report_data(outcome.report, counts), **cluster_data, **kernel_check.data(verdict)}
        print(cli_text.format_json(data))
    else:
        rows = []
        if pattern.input_kind(params) != "image":
            names = pattern.value_names(params) if pattern.value_names else ()
            rows += cli_text.format_result_rows(outcome.outputs[pattern.result].ravel(), names)
        if output_file:
            rows.append(("saved", output_file))
        print(cli_text.format_report(outcome.report, counts, verdict, pattern, about, rows, distributed))
        print_findings(kernel_check, verdict)
    return not verdict.is_bad


def read_inputs(
    pattern: Pattern, texts: Mapping[str, str], input_file: str | None, output_file: str | None, seed: int
) -> tuple[Inputs, Params, str]:
    """Read a variant's inputs and parameters; return them and a description of the input.

    Parameters
    ----------
    texts : mapping
        Texts of the parameters given on the command line, by name.
    input_file, output_file : str or None
        Files for the input and the result; an output file that cannot be written raises InputError.
    """
    return _read_inputs_and_params(
        pattern, _parameter_values(pattern, texts, input_file, output_file), input_file, output_file, seed
    )


def _read_inputs_and_params(
    pattern: Pattern, param_values: Params, input_file: str | None, output_file: str | None, seed: int
) -> tuple[Inputs, Params, str]:
    """Read the inputs for parameters that `_parameter_values` has checked; add default parameters."""
    params = pattern.check(param_values)
    match pattern.input_kind(params):
        case "image":
            inputs, about = _read_image(input_file, output_file)
        case "text":
            inputs = pattern.prepare_inputs({}, params, seed)
            about = f"{Path(input_file).name if input_file else 'text'}, {inputs['text'].size} characters"
        case _:
            if input_file:
                params = {**params, **pattern.params_for_role(Role.SOURCE, FROM_FILE)}
            inputs, about = _read_values(pattern, params, input_file, seed)
    pattern.accept(inputs, params)
    return inputs, params, about


def _parameter_values(
    pattern: Pattern, texts: Mapping[str, str], input_file: str | None, output_file: str | None
) -> Params:
    """Return the given and implied parameters; raise InputError if they or the output file are invalid."""
    param_values: dict[str, Any] = {**_find_implied_choices(pattern, texts), **texts}
    if input_file and pattern.input_kind(pattern.check(param_values)) == "text":
        param_values |= pattern.params_for_role(Role.TEXT, text_files.read_text(input_file))
    params = pattern.check(param_values)
    refuse_idle_parameters(pattern, param_values, params)
    if output_file:
        export.check_target(output_file)
        if pattern.input_kind(params) != "image" and export.is_image(output_file):
            raise InputError(f"Cannot write {output_file}: the result is an array, not an image. Use .npy or .csv.")
    return param_values


def count_work(report: Report, workload: Workload) -> RunCounts | None:
    """Count a simulated run's work on a small part of its input.

    Returns
    -------
    RunCounts or None
        None for a run on a GPU, and if an edited kernel fails on the small input; the checkers report that failure.
    """
    from gpu.run.work_count import count_pattern

    if not report.simulated:
        return None
    try:
        return count_pattern(workload, lambda progress: None)
    except KernelError:
        return None


def report_refusal(pattern: Pattern, variant: Variant, kernel_check: KernelCheck, *, as_json: bool) -> bool:
    """Print why a kernel was not run; return False.

    Parameters
    ----------
    variant : Variant
        The variant that was not run.
    kernel_check : KernelCheck
        The findings of the check; an error aborted the kernel.
    as_json : bool
        Whether to print JSON instead of text.
    """
    verdict = kernel_check.verdict(None, variant)
    if as_json:
        about = {"pattern": pattern.name, "variant": variant.name}
        print(cli_text.format_json({**about, **kernel_check.data(verdict)}))
    else:
        print(f"{pattern.title}\n{cli_text.format_rows([('verified', cli_text.format_verdict(verdict))])}")
        print_findings(kernel_check, verdict)
    return False


def print_findings(kernel_check: KernelCheck, verdict: Verdict) -> None:
    """Print the checks of an edited kernel and their findings."""
    if kernel_check.check is not None:
        print(cli_text.format_rows([("checked", verdict.sentence)]))
    if findings := kernel_check.format_findings():
        print(f"\n{findings}")


def _read_image(input_file: str | None, output_file: str | None) -> tuple[Inputs, str]:
    """Read an image; return it as a pattern's inputs, and a description."""
    path = Path(input_file or images.DEFAULT_SAMPLE)
    image = images.read_image(path)
    color = image.pixels.ndim == 3
    if output_file:
        export.check_target(output_file, color=color)
    height, width = image.pixels.shape[:2]
    inputs = {"image": image.pixels, "maxval": np.array(image.maxval, image.pixels.dtype)}
    kind = "color" if color else "gray"
    return inputs, f"{path.name}, {width} x {height}, {kind}, white is {image.maxval}"


def _read_values(pattern: Pattern, params: Params, input_file: str | None, seed: int) -> tuple[Inputs, str]:
    """Read or generate an array; return it as a pattern's inputs, and a description."""
    arrays = {"values": array_files.read_array(input_file, pattern.dimensions)} if input_file else {}
    inputs = pattern.prepare_inputs(arrays, params, seed)
    kind = pattern.value(params, Role.SOURCE)
    is_typed = pattern.value(params, Role.VALUES) is not None
    origin = Path(input_file).name if input_file else kind if is_typed else f"{kind}, seed {seed}"
    shape = " x ".join(map(str, inputs["values"].shape))
    return inputs, f"{origin}, {shape} x {pattern.value(params, Role.TYPE) or 'float32'}"


def read_stream_params(pattern: Pattern, texts: Mapping[str, str]) -> Params:
    """Return all parameters of a run that streams its input from a file; raise InputError if one is invalid."""
    choice = pattern.source
    file_choice = {choice.name: FROM_FILE} if choice is not None else {}
    param_values = {**_find_implied_choices(pattern, {**texts, **file_choice}), **file_choice, **texts}
    params = pattern.check(param_values)
    refuse_idle_parameters(pattern, texts, params)
    return params


def _find_implied_choices(pattern: Pattern, texts: Params) -> dict[str, str]:
    """Return the input choices implied by parameters that apply to one kind of input only."""
    implied: dict[str, str] = {}
    choices = {choice.name for choice in (pattern.subject, pattern.source) if choice is not None}
    for parameter in pattern.parameters:
        if parameter.name in texts and parameter.only_if:
            choice, options = parameter.only_if
            if choice in choices and choice not in texts and len(options) == 1:
                implied.setdefault(choice, options[0])
    return implied


def refuse_idle_parameters(pattern: Pattern, texts: Params, params: Params) -> None:
    """Raise InputError for a given parameter that has no effect with the others."""
    for parameter in pattern.parameters:
        if parameter.name in texts and not parameter.applies(params) and parameter.only_if:
            choice, options = parameter.only_if
            raise InputError(
                f"--{parameter.name} has no effect with --{choice} {params[choice]}, only with {', '.join(options)}."
            )


def _save_result(output_file: str, pattern: Pattern, inputs: Inputs, outcome: Outcome) -> None:
    if not export.is_image(output_file):
        export.save_array(output_file, outcome.outputs[pattern.result])
        return
    pixels, maxval = _to_image(pattern, inputs, outcome)
    export.save_array(output_file, pixels, maxval=maxval)


def _to_image(pattern: Pattern, inputs: Inputs, outcome: Outcome) -> tuple[Array, int | None]:
    """Return the result as pixels and the value of white, which is the input's if the pattern keeps its levels."""
    if isinstance(pattern.presentation, CountsPresentation):
        return chart.draw_counts(outcome.outputs[pattern.result]), None
    if "image" in outcome.presented_arrays:
        return outcome.presented_arrays["image"], int(inputs["maxval"])
    return outcome.presented_arrays["picture"], None
