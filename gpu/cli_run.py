"""The command `run`: one variant of a pattern, without a window, in the process that calls."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np

from gpu import chart, cli_text, engines, export, images
from gpu.errors import InputError
from gpu.execute import Outcome, run_pattern
from gpu.pattern import Array, Inputs, Params, Pattern


def run(
    pattern: Pattern,
    variant_name: str,
    given: Mapping[str, str],
    *,
    engine_name: str,
    source: str | None,
    target: str | None,
    as_json: bool,
) -> bool:
    """Run a variant, print what came of it and save it; return whether the result is as right as it can be."""
    variant = pattern.variant(variant_name)
    params = pattern.check(given)
    _refuse_idle_parameters(pattern, given, params)
    if target:
        export.check_target(target)
    image = images.read_image(source or images.DEFAULT_SAMPLE)
    if target:
        export.check_target(target, colour=image.pixels.ndim == 3)
    inputs = {"image": image.pixels, "maxval": np.array(image.maxval, image.pixels.dtype)}
    pattern.accept(inputs, params)
    with closing(engines.create(engine_name)) as engine:
        outcome = run_pattern(engine, pattern, variant, inputs, params, lambda progress: None)
    if target:
        _save(target, pattern, inputs, outcome)
    if as_json:
        print(cli_text.report_as_json(outcome.report))
    else:
        print(cli_text.report_as_text(outcome.report, pattern, Path(source or images.DEFAULT_SAMPLE), image, target))
    return outcome.report.verified is not False or variant.cautionary != ""


def _refuse_idle_parameters(pattern: Pattern, given: Params, params: Params) -> None:
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
    if pattern.view == "image-counts":
        return chart.draw_counts(outcome.outputs[pattern.result]), None
    if "image" in outcome.presented:
        return outcome.presented["image"], int(inputs["maxval"])
    return outcome.presented["picture"], None
