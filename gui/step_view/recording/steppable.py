"""What a Step tab steps through: a variant of a pattern, a kernel of one's own, or a recording that was saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from gpu.declaration.pattern import (
    Choice,
    CountedText,
    Inputs,
    Integer,
    Parameter,
    Params,
    Pattern,
    Textbook,
    Variant,
    with_role,
)
from gpu.declaration.presentation import Kind
from gpu.declaration.roles import Role
from gpu.declaration.text_parameters import Text
from gpu.errors import InputError
from gpu.messages.requests import StepKernel, StepPattern, StepWriter
from gpu.messages.shared_arrays import SharedArray

MOST_ELEMENTS = 2048
"""Two for each thread of the largest block; and characters of a text."""
MOST_ROWS = 32
"""Rows or columns of a matrix."""


Checked = Callable[[Path], bytes]


@dataclass(frozen=True)
class ReadRecording:
    """Read a recording that was saved, where others have a run recorded.

    Parameters
    ----------
    path : Path
    checked : callable
        The path -> its bytes, which were found sound; InputError for others.
    """

    path: Path
    checked: Checked


RunRequest = StepPattern | StepKernel
StepRequest = RunRequest | StepWriter | ReadRecording


@dataclass(frozen=True)
class Chosen:
    """What is chosen in a Step tab, as of a StepPattern."""

    params: Params
    inputs: Mapping[str, SharedArray]
    seed: int
    schedule: str
    sources: Mapping[str, str]


def _asked_for(params: Params) -> int | None:
    """Let a block have as many threads as are asked for."""
    return None


def _nothing_given(params: Params) -> Kind | None:
    """Make the input, or take it from elsewhere."""
    return None


def _whole(inputs: Inputs) -> Inputs:
    """Cut nothing off."""
    return inputs


@dataclass(frozen=True)
class Figures:
    """What there is to be said of `n` elements without a run.

    Parameters
    ----------
    n : int
    textbook : Textbook or None
        What a textbook says of them; None where it says nothing.
    sequential : int or None
        The operations of one thread that is alone; None where that is not known.
    """

    n: int
    textbook: Textbook | None
    sequential: int | None


def _no_figures(request: StepRequest, n: int | None = None) -> Figures | None:
    """Know of no textbook, and of no thread that is alone."""
    return None


def _no_text(request: StepRequest) -> CountedText | None:
    """Know of no text."""
    return None


class OtherVariant(NamedTuple):
    """A variant of the same pattern, which takes the same parameters."""

    name: str
    title: str


@dataclass(frozen=True)
class Steppable:
    """Something that can be stepped through; what is called and shown alike is the same.

    Parameters
    ----------
    subject : str
        What stays the same while a tab steps through one variant after the other.
    name : str
        How the names of files begin that are made of it.
    title : str
        What stands above its pictures.
    file, kernel : str
        The kernel file, a name under `kernels/` or a path, and the function in it that is shown before any has run.
    request : callable
        Chosen -> what is asked for; InputError where nothing can be recorded as it is.
    library : str
        The library whose routine it is, which cannot be stepped through; "" for a kernel.
    parameters : tuple of Parameter
        What can be chosen, within what can be watched.
    others : tuple of OtherVariant
        What it can be compared with on the same input, the nearest first.
    random : bool
        Whether another seed makes another input.
    threads : callable
        params -> how many threads a block has, where these are not as many as are asked for, else None.
    takes : callable
        params -> which kind of input is needed that somebody opened, as the part of it that can be watched; None where
        none is.
    cut : callable
        Inputs -> that part.
    followed : tuple of str
        The parameters that take a run's value when that changes: what the run takes, and what it does with it.
    along : tuple of str
        Those of them that go along with any other: they begin otherwise than a run's, and others are measured in them.
    text : callable
        The request -> how a text is counted; None where none is.
    figures : callable
        (request, n) -> Figures of n elements, without n of as many as the request has; None where nothing is known.
    """

    subject: str
    name: str
    title: str
    file: str
    kernel: str
    request: Callable[[Chosen], StepRequest] = field(compare=False)
    library: str = ""
    parameters: tuple[Parameter, ...] = field(default=(), compare=False)
    others: tuple[OtherVariant, ...] = ()
    random: bool = False
    threads: Callable[[Params], int | None] = field(default=_asked_for, compare=False)
    takes: Callable[[Params], Kind | None] = field(default=_nothing_given, compare=False)
    cut: Callable[[Inputs], Inputs] = field(default=_whole, compare=False)
    followed: tuple[str, ...] = ()
    along: tuple[str, ...] = ()
    figures: Callable[[StepRequest, int | None], Figures | None] = field(default=_no_figures, compare=False)
    text: Callable[[StepRequest], CountedText | None] = field(default=_no_text, compare=False)


def _elements(pattern: Pattern, request: StepPattern) -> int | None:
    """Return how many elements a request has: pixels, characters, or what is made or typed; None where nothing says."""
    text = pattern.parameter(Role.TEXT)
    match pattern.takes(request.params):
        case "image":
            return prod(request.inputs["image"].shape) if "image" in request.inputs else None
        case "text" if text is not None:
            return len(request.params[text.name])
        case "values" if pattern.dimensions == 1 and "values" in request.inputs:
            return prod(request.inputs["values"].shape)
    return pattern.elements(request.params)


def _others(pattern: Pattern, variant: Variant) -> tuple[OtherVariant, ...]:
    """Return the other rungs of a ladder that can be stepped, the one below first: that is what a rung improves on."""
    place = pattern.variants.index(variant)
    found = [each for each in (*pattern.variants[:place][::-1], *pattern.variants[place + 1 :]) if not each.library]
    return tuple(OtherVariant(each.name, each.title) for each in found)


def stepped_variant(pattern: Pattern, variant: Variant) -> Steppable:
    """Return a variant of a pattern as what is stepped through, on a small input."""

    def figures(request: StepRequest, n: int | None = None) -> Figures | None:
        if not isinstance(request, StepPattern):
            return None  # a block alone is no whole of which a textbook says anything
        n = _elements(pattern, request) if n is None else n
        if n is None:
            return None
        book, alone = pattern.textbook_of(variant, request.params, n), pattern.sequential
        return Figures(n, book, alone(request.params, n) if alone else None)

    followed = tuple(each.name for each in pattern.parameters if _is_followed(each, pattern))
    begins_so = (pattern.parameter(Role.SOURCE), pattern.parameter(Role.TEXT))
    return Steppable(
        subject=pattern.name,
        name=f"{pattern.name}-{variant.name}",
        title=f"{pattern.title}: {variant.title}",
        file=pattern.file_of(variant.name),
        kernel=variant.kernels[0] if variant.kernels else "",
        request=lambda chosen: StepPattern(
            pattern.name,
            variant.name,
            chosen.params,
            chosen.inputs,
            chosen.seed,
            chosen.schedule,
            chosen.sources,
        ),
        library=variant.library,
        parameters=tuple(_watchable(parameter, pattern) for parameter in pattern.parameters),
        others=_others(pattern, variant),
        random=pattern.make_input is not None,
        threads=variant.threads or _asked_for,
        takes=lambda params: _kind_given(pattern, params),
        cut=pattern.step_input,
        followed=followed,
        along=tuple(
            name
            for name in followed
            if name in pattern.step_params and name not in (each.name for each in begins_so if each is not None)
        ),
        figures=figures,
        text=lambda request: pattern.text(request.params) if isinstance(request, StepPattern) else None,
    )


def smaller(request: RunRequest, parameters: tuple[Parameter, ...]) -> list[StepPattern]:
    """Return what a request asks for at the powers of two below its size, the smallest first; none without a size.

    Blocks are no larger than it takes, so that what is seen is small too.
    """
    size, block = (with_role(parameters, role) for role in (Role.SIZE, Role.BLOCK))
    if not isinstance(request, StepPattern) or not isinstance(size, Integer) or not size.applies(request.params):
        return []
    if request.inputs:
        return []
    sizes = [2**power for power in range(1, int(request.params[size.name] - 1).bit_length())]
    found = []
    for n in sizes:
        with suppress(InputError):
            changed: dict[str, Any] = {size.name: size.check(n)}
            if isinstance(block, Choice) and str(request.params[block.name]).isdecimal():
                threads = [int(each) for each in block.options if each.isdecimal() and int(each) >= n]
                changed[block.name] = str(min((*threads, int(request.params[block.name]))))
            found.append(replace(request, params={**request.params, **changed}))
    return found


def _kind_given(pattern: Pattern, params: Params) -> Kind | None:
    """Return which kind of input a run needs that somebody opened; None where it makes its own."""
    if pattern.takes(params) == "image":
        return "image"
    return "values" if pattern.from_file(params) else None


def _is_followed(parameter: Parameter, pattern: Pattern) -> bool:
    """Whether a parameter says what is taken, or what is done with it, rather than how much there is of it.

    How many there are, and how they are divided among threads, is chosen for a Step alone.
    """
    match parameter:
        case Choice():
            return not all(option.isdecimal() for option in parameter.options) and parameter.role is not Role.BLOCK
        case Integer():
            return (
                parameter.only_if is not None and parameter.role is None and parameter.name not in pattern.step_params
            )
    return True


def _watchable(parameter: Parameter, pattern: Pattern) -> Parameter:
    """Return a parameter that begins as a Step does, and has no values that are too many to be watched."""
    start = pattern.step_params.get(parameter.name)
    if isinstance(parameter, Text):
        parameter = replace(parameter, maximum=min(parameter.maximum, MOST_ELEMENTS))
    if start is None:
        return parameter
    changes: dict[str, Any] = {"default": start}
    most = MOST_ROWS if pattern.dimensions == 2 else MOST_ELEMENTS
    if isinstance(parameter, Integer) and parameter.maximum > most:
        changes["maximum"] = parameter.minimum + (most - parameter.minimum) // parameter.step * parameter.step
    return replace(parameter, **changes)
