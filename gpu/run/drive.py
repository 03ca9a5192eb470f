"""A variant's host program, taken and run to its end on an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpu.declaration.pattern import Inputs, Outputs, Pattern, Progress, Variant, compiling
from gpu.engines.base import Device, Engine
from gpu.errors import InputError
from gpu.run.frames import Frames

ANOTHER = "Take another variant."

Tell = Callable[[Progress], None]


def accept(pattern: Pattern, variant: Variant, inputs: Inputs, params: Mapping[str, Any]) -> None:
    """Raise InputError where inputs and parameters are not ones that a variant takes."""
    pattern.accept(inputs, params)
    if reason := variant.obstacle(inputs, params):
        another = f"{variant.title} needs more than {pattern.title} does: take another variant."
        raise InputError(reason, advice="Take fewer elements, or another variant." if variant.alone else another)


def refuse_missing(variant: Variant, device: Device, where: str = "here") -> None:
    """Raise InputError where a device lacks what a variant needs; `where` says of which device that is."""
    if missing := variant.missing(device):
        who = f"{variant.library} cannot be called" if variant.library else f"{variant.title!r} cannot run"
        raise InputError(f"{who} {where}. {missing}", advice=ANOTHER)


def refuse_library(variant: Variant) -> None:
    """Raise InputError where a variant has no kernel of its own."""
    if variant.library:
        raise InputError(f"{variant.library} is a library: it has no source to step through.", advice=ANOTHER)


def drive(
    engine: Engine,
    variant: Variant,
    inputs: Inputs,
    params: Mapping[str, Any],
    tell: Tell,
    frames: Frames | None = None,
) -> Outputs:
    """Run a host program to its end, telling how far it is: between launches by itself, within one by the engine."""
    latest = Progress(0.0)
    furthest = 0.0

    def launched(fraction: float) -> None:
        # The engine knows how far a launch is, not how many follow: let it fill what the host program left open.
        nonlocal furthest
        done = latest.fraction or 0.0
        furthest = max(furthest, done + (1 - done) * fraction)
        tell(Progress(furthest, latest.message))

    quiet, engine.on_progress = engine.on_progress, launched
    silent, engine.on_compiling = engine.on_compiling, lambda name: tell(compiling(name))
    program = variant.run(engine, inputs, params)
    try:
        while True:
            latest = next(program)
            furthest = max(furthest, latest.fraction or 0.0)
            tell(Progress(None if latest.fraction is None else furthest, latest.message))
            if frames is not None:
                frames.take(engine, latest)
    except StopIteration as end:
        outputs: Outputs = end.value
        return outputs
    finally:
        program.close()
        engine.on_progress = quiet
        engine.on_compiling = silent
