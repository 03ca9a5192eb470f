"""Run a variant's host program to its end on an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpu.base.errors import InputError
from gpu.declaration.pattern import Inputs, Outputs, Pattern, Progress, Variant, compiling_progress
from gpu.engines.base import Device, Engine
from gpu.run.frames import Frames

OTHER_VARIANT_ADVICE = "Choose another variant."

ProgressCallback = Callable[[Progress], None]


def validate_inputs(pattern: Pattern, variant: Variant, inputs: Inputs, params: Mapping[str, Any]) -> None:
    """Check the inputs and parameters of a run.

    Parameters
    ----------
    variant : Variant
        The variant to run, which may accept less than its pattern.
    inputs : mapping
        The complete inputs.
    params : mapping
        All parameters of the pattern.

    Raises
    ------
    InputError
        The inputs or parameters are not valid for the variant.
    """
    pattern.accept(inputs, params)
    if reason := variant.obstacle(inputs, params):
        another = f"{variant.title} needs more than {pattern.title} does: choose another variant."
        raise InputError(
            reason, advice="Use fewer elements, or another variant." if variant.is_single_thread else another
        )


def refuse_missing_features(variant: Variant, device: Device, location: str = "here") -> None:
    """Raise InputError if a device lacks a feature that a variant needs; `location` names the device in the message."""
    if missing := variant.unsupported_reason(device):
        subject = f"{variant.library} cannot be called" if variant.library else f"{variant.title!r} cannot run"
        raise InputError(f"{subject} {location}. {missing}", advice=OTHER_VARIANT_ADVICE)


def refuse_library(variant: Variant) -> None:
    """Raise InputError if the variant is a library routine without a kernel."""
    if variant.library:
        raise InputError(
            f"{variant.library} is a library: it has no source to step through.", advice=OTHER_VARIANT_ADVICE
        )


def run_host_program(
    engine: Engine,
    variant: Variant,
    inputs: Inputs,
    params: Mapping[str, Any],
    report_progress: ProgressCallback,
    frames: Frames | None = None,
) -> Outputs:
    """Run a host program to its end and report progress, between launches and within them.

    Parameters
    ----------
    inputs, params : mapping
    report_progress : callable
        Called with the progress.
    frames : Frames or None
        Takes pictures between launches.
    """
    latest = Progress(0.0)
    furthest = 0.0

    def on_launch_progress(fraction: float) -> None:
        # The number of remaining launches is unknown, so a launch's progress fills the rest of the program's.
        nonlocal furthest
        finished = latest.fraction or 0.0
        furthest = max(furthest, finished + (1 - finished) * fraction)
        report_progress(Progress(furthest, latest.message))

    previous_on_progress, engine.on_progress = engine.on_progress, on_launch_progress
    previous_on_compiling, engine.on_compiling = (
        engine.on_compiling,
        lambda name: report_progress(compiling_progress(name)),
    )
    program = variant.run(engine, inputs, params)
    try:
        while True:
            latest = next(program)
            furthest = max(furthest, latest.fraction or 0.0)
            report_progress(Progress(None if latest.fraction is None else furthest, latest.message))
            if frames is not None:
                frames.take(engine, latest)
    except StopIteration as end:
        outputs: Outputs = end.value
        return outputs
    finally:
        program.close()
        engine.on_progress = previous_on_progress
        engine.on_compiling = previous_on_compiling
