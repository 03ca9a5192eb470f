"""The command `run`: one variant of a pattern, without a window, in the process that calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from gpu import engines
from gpu.cli import report as cli_text
from gpu.cli.cluster_options import OnCluster
from gpu.cli.judged import Judged, judged
from gpu.declaration.pattern import Array, Inputs, Params, Pattern, Variant
from gpu.declaration.presentation import CountsPresentation
from gpu.declaration.roles import FROM_FILE, Role
from gpu.errors import InputError, KernelError
from gpu.files import arrays as array_files
from gpu.files import images
from gpu.files import text as text_files
from gpu.messages.counted import RunCounts
from gpu.messages.distributed import DistributedRun
from gpu.messages.requests import Report
from gpu.messages.verdicts import Verdict
from gpu.run import chart, export
from gpu.run.drive import Tell
from gpu.run.execute import Outcome, run_pattern

CarryOut = Callable[[Pattern, Variant, Inputs, Params, Mapping[str, str]], tuple[Outcome, DistributedRun | None]]


def run(
    pattern: Pattern,
    variant_name: str,
    given: Mapping[str, str],
    *,
    engine_name: str,
    executor: str,
    schedule: str,
    source: str | None,
    target: str | None,
    kernel: str | None,
    seed: int,
    as_json: bool,
    cluster: OnCluster | None = None,
) -> bool:
    """Run a variant, print what came of it and save it; return whether the result is as right as it can be.

    Where the kernel's text is not the project's own it is checked too, and nothing may be found; where a mistake ends
    the check there is no result.

    Parameters
    ----------
    pattern : Pattern
    variant_name : str
    given : mapping
        Texts of parameters.
    engine_name, executor, schedule : str
    source : str or None
        A file with the input; without one the pattern makes it, or takes the sample image.
    target : str or None
        A file for the result.
    kernel : str or None
        A file whose text stands in the place of the pattern's kernel file.
    seed : int
        What an input that is made grows from.
    as_json : bool
    cluster : OnCluster or None
        The cluster that is asked for, which then takes an engine's place.
    """
    variant = pattern.variant(variant_name)
    # What is wrong with the input is said before an engine is started.
    asked = _asked(pattern, given, source, target)
    if cluster is not None:
        return _run_on_cluster(pattern, variant, asked, source, target, kernel, seed, cluster, as_json=as_json)
    with closing(engines.create(engine_name, executor, schedule)) as engine:

        def carry_out(
            pattern: Pattern, variant: Variant, inputs: Inputs, params: Params, sources: Mapping[str, str]
        ) -> tuple[Outcome, None]:
            tell: Tell = lambda progress: None  # noqa: E731
            return run_pattern(engine, pattern, variant, inputs, params, tell, sources=sources, seed=seed), None

        pattern = pattern.on(engine.device)
        return _run_on(carry_out, pattern, variant, asked, source, target, kernel, seed, as_json=as_json)


def _run_on_cluster(
    pattern: Pattern,
    variant: Variant,
    asked: Params,
    source: str | None,
    target: str | None,
    kernel: str | None,
    seed: int,
    cluster: OnCluster,
    *,
    as_json: bool,
) -> bool:
    from gpu.cli.cluster import Runner
    from gpu.distributed.cluster import opened
    from gpu.distributed.library import load_dask

    pattern.over_devices()  # what cannot be is said before Dask is looked for
    load_dask()
    with opened(cluster.asked) as workers:
        runner = Runner(workers, cluster)
        pattern = pattern.on(runner.device)
        return _run_on(runner, pattern, variant, asked, source, target, kernel, seed, as_json=as_json)


def _run_on(
    carry_out: CarryOut,
    pattern: Pattern,
    variant: Variant,
    asked: Params,
    source: str | None,
    target: str | None,
    kernel: str | None,
    seed: int,
    *,
    as_json: bool,
) -> bool:
    """Do what `run` does, with whatever carries a variant out."""
    inputs, params, about = _read(pattern, asked, source, target, seed)
    of_image = pattern.takes(params) == "image"
    edited = judged(pattern, variant, kernel, inputs, params, seed=seed)
    if edited.ended:
        return refused(pattern, variant, edited, as_json=as_json)
    outcome, distributed = carry_out(pattern, variant, inputs, params, edited.sources)
    if target:
        _save(target, pattern, inputs, outcome)
    verdict = edited.verdict(outcome.report.verified, variant)
    counts = counted(outcome.report, pattern, variant, inputs, params, edited.sources, seed)
    if as_json:
        of_cluster = distributed.data() if distributed is not None else {}
        print(cli_text.as_json({**cli_text.report_data(outcome.report, counts), **of_cluster, **edited.data(verdict)}))
    else:
        values = None if of_image else outcome.outputs[pattern.result].ravel()
        names = pattern.names(params) if pattern.names else ()
        told = (outcome.report, counts, verdict, pattern, about, values, target, names)
        print(cli_text.report_as_text(*told, distributed=distributed))
        print_findings(edited, verdict)
    return not verdict.bad


def read_inputs(
    pattern: Pattern, given: Mapping[str, str], source: str | None, target: str | None, seed: int
) -> tuple[Inputs, Params, str]:
    """Return what a variant is run on, all parameters, and what people say of the input.

    Parameters
    ----------
    pattern : Pattern
    given : mapping
        Texts of parameters.
    source, target : str or None
        Files with the input and for the result, which is refused here where it cannot be written.
    seed : int
    """
    return _read(pattern, _asked(pattern, given, source, target), source, target, seed)


def _read(
    pattern: Pattern, asked: Params, source: str | None, target: str | None, seed: int
) -> tuple[Inputs, Params, str]:
    """Do what `read_inputs` does, of parameters that `_asked` has seen; those left out are the pattern's own."""
    params = pattern.check(asked)
    match pattern.takes(params):
        case "image":
            inputs, about = _read_image(source, target)
        case "text":
            inputs = pattern.inputs({}, params, seed)
            about = f"{Path(source).name if source else 'text'}, {inputs['text'].size} characters"
        case _:
            if source:
                params = {**params, **pattern.with_value(Role.SOURCE, FROM_FILE)}
            inputs, about = _read_values(pattern, params, source, seed)
    pattern.accept(inputs, params)
    return inputs, params, about


def _asked(pattern: Pattern, given: Mapping[str, str], source: str | None, target: str | None) -> Params:
    """Return what is given, with what that implies; raise InputError where it, or the result's file, cannot be so."""
    asked: dict[str, Any] = {**_implied(pattern, given), **given}
    if source and pattern.takes(pattern.check(asked)) == "text":
        asked |= pattern.with_value(Role.TEXT, text_files.read_text(source))
    params = pattern.check(asked)
    refuse_idle_parameters(pattern, asked, params)
    if target:
        export.check_target(target)
        if pattern.takes(params) != "image" and export.is_image(target):
            raise InputError(f"{target} cannot be written: an array is no image; .npy and .csv are known.")
    return asked


def counted(
    report: Report,
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    params: Params,
    sources: Mapping[str, str],
    seed: int,
) -> RunCounts | None:
    """Return what a simulated run does, counted on a small part of its input; None of a run on a GPU.

    None too where an edited kernel fails on so little: what there is to say of that the checkers say.
    """
    from gpu.run.count import count_pattern

    if not report.simulated:
        return None
    try:
        return count_pattern(pattern, variant, inputs, params, lambda progress: None, sources=sources, seed=seed)
    except KernelError:
        return None


def refused(pattern: Pattern, variant: Variant, edited: Judged, *, as_json: bool) -> bool:
    """Print why a kernel was not run, and return that it is not right."""
    verdict = edited.verdict(None, variant)
    if as_json:
        about = {"pattern": pattern.name, "variant": variant.name}
        print(cli_text.as_json({**about, **edited.data(verdict)}))
    else:
        print(f"{pattern.title}\n{cli_text.rows_as_text([('verified', cli_text.verdict_text(verdict))])}")
        print_findings(edited, verdict)
    return False


def print_findings(edited: Judged, verdict: Verdict) -> None:
    """Print what was looked for in an edited kernel, and what was found."""
    if edited.check is not None:
        print(cli_text.rows_as_text([("checked", verdict.sentence)]))
    if found := edited.text():
        print(f"\n{found}")


def _read_image(source: str | None, target: str | None) -> tuple[Inputs, str]:
    """Return an image as a pattern takes it, and what people say of it."""
    path = Path(source or images.DEFAULT_SAMPLE)
    image = images.read_image(path)
    color = image.pixels.ndim == 3
    if target:
        export.check_target(target, color=color)
    height, width = image.pixels.shape[:2]
    inputs = {"image": image.pixels, "maxval": np.array(image.maxval, image.pixels.dtype)}
    kind = "color" if color else "gray"
    return inputs, f"{path.name}, {width} x {height}, {kind}, white is {image.maxval}"


def _read_values(pattern: Pattern, params: Params, source: str | None, seed: int) -> tuple[Inputs, str]:
    """Return an array as a pattern takes it, and what people say of it."""
    given = {"values": array_files.read_array(source, pattern.dimensions)} if source else {}
    inputs = pattern.inputs(given, params, seed)
    made = pattern.value(params, Role.SOURCE)
    typed = pattern.value(params, Role.VALUES) is not None
    origin = Path(source).name if source else made if typed else f"{made}, seed {seed}"
    shape = " x ".join(map(str, inputs["values"].shape))
    return inputs, f"{origin}, {shape} x {pattern.value(params, Role.TYPE) or 'float32'}"


def asked_of_file(pattern: Pattern, given: Mapping[str, str]) -> Params:
    """Return all parameters of a run whose input stays in a file; InputError where one cannot be so."""
    source = pattern.source
    of_file = {source.name: FROM_FILE} if source is not None else {}
    asked = {**_implied(pattern, {**given, **of_file}), **of_file, **given}
    params = pattern.check(asked)
    refuse_idle_parameters(pattern, given, params)
    return params


def _implied(pattern: Pattern, given: Params) -> dict[str, str]:
    """Return what kind of input follows from a parameter that counts with one kind only, where none is chosen."""
    implied: dict[str, str] = {}
    choices = {choice.name for choice in (pattern.subject, pattern.source) if choice is not None}
    for parameter in pattern.parameters:
        if parameter.name in given and parameter.only_if:
            choice, options = parameter.only_if
            if choice in choices and choice not in given and len(options) == 1:
                implied.setdefault(choice, options[0])
    return implied


def refuse_idle_parameters(pattern: Pattern, given: Params, params: Params) -> None:
    """Refuse what was asked for and would be without effect."""
    for parameter in pattern.parameters:
        if parameter.name in given and not parameter.applies(params) and parameter.only_if:
            choice, options = parameter.only_if
            raise InputError(
                f"--{parameter.name} has no effect with --{choice} {params[choice]}, only with {', '.join(options)}."
            )


def _save(target: str, pattern: Pattern, inputs: Inputs, outcome: Outcome) -> None:
    if not export.is_image(target):
        export.save(target, outcome.outputs[pattern.result])
        return
    pixels, maxval = _as_image(pattern, inputs, outcome)
    export.save(target, pixels, maxval=maxval)


def _as_image(pattern: Pattern, inputs: Inputs, outcome: Outcome) -> tuple[Array, int | None]:
    """Return the result as pixels, and the value of white: in the input's levels, where the pattern keeps them."""
    if isinstance(pattern.presentation, CountsPresentation):
        return chart.draw_counts(outcome.outputs[pattern.result]), None
    if "image" in outcome.presented:
        return outcome.presented["image"], int(inputs["maxval"])
    return outcome.presented["picture"], None
