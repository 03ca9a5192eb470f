"""Programs that a Step tab can record: a variant of a pattern, a user's kernel, or a saved recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from gpu.base.errors import InputError
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
    find_by_role,
)
from gpu.declaration.presentation import InputKind
from gpu.declaration.roles import Role
from gpu.declaration.text_parameters import Text
from gpu.messages.kernels import StepKernel
from gpu.messages.runs.recordings import StepPattern
from gpu.messages.runs.writer import StepWriter
from gpu.messages.shared_arrays import SharedArray

MAX_ELEMENTS = 2048
"""Maximum number of elements, two per thread of the largest block, and of characters of a text."""
MAX_ROWS = 32
"""Maximum number of rows or columns of a matrix."""


CheckedReader = Callable[[Path], bytes]


@dataclass(frozen=True)
class ReadRecording:
    """A request to read a saved recording instead of recording a run.

    Parameters
    ----------
    read_checked : callable
        Returns the file's bytes after checking them; raises InputError if they are invalid.
    """

    path: Path
    read_checked: CheckedReader


RunRequest = StepPattern | StepKernel
StepRequest = RunRequest | StepWriter | ReadRecording


@dataclass(frozen=True)
class StepSettings:
    """The settings of a Step tab; the fields are those of StepPattern."""

    params: Params
    inputs: Mapping[str, SharedArray]
    seed: int
    schedule: str
    sources: Mapping[str, str]


def _requested_threads(params: Params) -> int | None:
    """Return None: blocks have the requested number of threads."""
    return None


@dataclass(frozen=True)
class ExpectedCounts:
    """Counts for `n` elements that are known without a run.

    Parameters
    ----------
    textbook : Textbook or None
        The textbook's counts, if there are any.
    sequential : int or None
        Operations of a sequential program, if known.
    """

    n: int
    textbook: Textbook | None
    sequential: int | None


class OtherVariant(NamedTuple):
    """Another variant of the pattern, with the parameters of this one."""

    name: str
    title: str


@dataclass(frozen=True)
class Steppable:
    """A program that can be recorded and stepped through; equality ignores callables and parameters.

    Parameters
    ----------
    subject : str
        Identity of a tab's subject, such as the pattern; it stays the same for all variants.
    name : str
        Start of exported files' names.
    title : str
        Title of the pictures.
    file, kernel : str
        The kernel file, a name under `kernels/` or a path, and the function shown before any has run.
    make_request : callable
        Returns the request for some StepSettings; raises InputError if they cannot be recorded.
    library : str
        The library of a routine that cannot be stepped through; "" for a kernel.
    parameters : tuple of Parameter
        The settings, with sizes reduced so that the run is small enough to step through.
    other_variants : tuple of OtherVariant
        Variants to compare with on the same input, most similar first.
    random : bool
        The input depends on a seed.
    threads_per_block : callable
        Returns the threads per block for some parameters if they differ from the requested number, else None.
    input_kind : callable
        Returns the kind of opened file that some parameters need as input, or None.
    cut_input : callable
        Returns the part of an input that is small enough to step through.
    followed_parameters : tuple of str
        Parameters that follow the Run tab: its input, and the operation on it.
    always_copied : tuple of str
        Followed parameters that are copied whenever another one changes, since others are relative to them and their
        initial values differ from the Run tab's.
    text : callable
        Returns the names of a text's arrays and bins for a request, or None.
    expected_counts : callable
        Returns the ExpectedCounts of a request and a number of elements, by default the request's; None if none are
        known.
    """

    subject: str
    name: str
    title: str
    file: str
    kernel: str
    make_request: Callable[[StepSettings], StepRequest] = field(compare=False)
    library: str = ""
    parameters: tuple[Parameter, ...] = field(default=(), compare=False)
    other_variants: tuple[OtherVariant, ...] = ()
    random: bool = False
    threads_per_block: Callable[[Params], int | None] = field(default=_requested_threads, compare=False)
    input_kind: Callable[[Params], InputKind | None] = field(default=lambda params: None, compare=False)
    cut_input: Callable[[Inputs], Inputs] = field(default=lambda inputs: inputs, compare=False)
    followed_parameters: tuple[str, ...] = ()
    always_copied: tuple[str, ...] = ()
    expected_counts: Callable[[StepRequest, int | None], ExpectedCounts | None] = field(
        default=lambda request, n=None: None, compare=False
    )
    text: Callable[[StepRequest], CountedText | None] = field(default=lambda request: None, compare=False)


def _count_elements(pattern: Pattern, request: StepPattern) -> int | None:
    """Return a request's number of elements: pixels, characters, or generated or entered values; None if unknown."""
    text = pattern.parameter(Role.TEXT)
    match pattern.input_kind(request.params):
        case "image":
            return prod(request.inputs["image"].shape) if "image" in request.inputs else None
        case "text" if text is not None:
            return len(request.params[text.name])
        case "values" if pattern.dimensions == 1 and "values" in request.inputs:
            return prod(request.inputs["values"].shape)
    return pattern.count_elements(request.params)


def _list_other_variants(pattern: Pattern, variant: Variant) -> tuple[OtherVariant, ...]:
    """Return the other variants that can be stepped through, those below in the ladder first, nearest first."""
    index = pattern.variants.index(variant)
    variants = [each for each in (*pattern.variants[:index][::-1], *pattern.variants[index + 1 :]) if not each.library]
    return tuple(OtherVariant(each.name, each.title) for each in variants)


def make_variant_steppable(pattern: Pattern, variant: Variant) -> Steppable:
    """Return a variant of a pattern as a Steppable with a small input."""

    def expected_counts(request: StepRequest, n: int | None = None) -> ExpectedCounts | None:
        if not isinstance(request, StepPattern):
            return None  # textbook counts are for a whole run, not for one block
        n = _count_elements(pattern, request) if n is None else n
        if n is None:
            return None
        book, sequential = pattern.textbook_of(variant, request.params, n), pattern.sequential_operations
        return ExpectedCounts(n, book, sequential(request.params, n) if sequential else None)

    followed = tuple(each.name for each in pattern.parameters if _is_followed(each, pattern))
    own_defaults = (pattern.parameter(Role.SOURCE), pattern.parameter(Role.TEXT))
    return Steppable(
        subject=pattern.name,
        name=f"{pattern.name}-{variant.name}",
        title=f"{pattern.title}: {variant.title}",
        file=pattern.kernel_file_of(variant.name),
        kernel=variant.kernels[0] if variant.kernels else "",
        make_request=lambda chosen: StepPattern(
            pattern.name,
            variant.name,
            chosen.params,
            chosen.inputs,
            chosen.seed,
            chosen.sources,
            chosen.schedule,
        ),
        library=variant.library,
        parameters=tuple(_limit_parameter(parameter, pattern) for parameter in pattern.parameters),
        other_variants=_list_other_variants(pattern, variant),
        random=pattern.make_input is not None,
        threads_per_block=variant.threads or _requested_threads,
        input_kind=lambda params: _find_input_kind(pattern, params),
        cut_input=pattern.step_input,
        followed_parameters=followed,
        always_copied=tuple(
            name
            for name in followed
            if name in pattern.step_params and name not in (each.name for each in own_defaults if each is not None)
        ),
        expected_counts=expected_counts,
        text=lambda request: pattern.describe_text(request.params) if isinstance(request, StepPattern) else None,
    )


def list_smaller_requests(request: RunRequest, parameters: tuple[Parameter, ...]) -> list[StepPattern]:
    """Return the request at all smaller powers of two, smallest first; an empty list if it has no size.

    Blocks are no larger than the size needs, so that the picture is small too.
    """
    size, block = (find_by_role(parameters, role) for role in (Role.SIZE, Role.BLOCK))
    if not isinstance(request, StepPattern) or not isinstance(size, Integer) or not size.applies(request.params):
        return []
    if request.inputs:
        return []
    sizes = [2**power for power in range(1, int(request.params[size.name] - 1).bit_length())]
    requests = []
    for n in sizes:
        with suppress(InputError):
            changed: dict[str, Any] = {size.name: size.check(n)}
            if isinstance(block, Choice) and str(request.params[block.name]).isdecimal():
                threads = [int(option) for option in block.options if option.isdecimal() and int(option) >= n]
                changed[block.name] = str(min((*threads, int(request.params[block.name]))))
            requests.append(replace(request, params={**request.params, **changed}))
    return requests


def _find_input_kind(pattern: Pattern, params: Params) -> InputKind | None:
    """Return the kind of opened file that a run needs as input; None if it generates its input."""
    if pattern.input_kind(params) == "image":
        return "image"
    return "values" if pattern.reads_file(params) else None


def _is_followed(parameter: Parameter, pattern: Pattern) -> bool:
    """Return whether a parameter selects the input or the operation, not a size.

    Sizes, and the division among threads, are set separately in the Step tab.
    """
    match parameter:
        case Choice():
            return not all(option.isdecimal() for option in parameter.options) and parameter.role is not Role.BLOCK
        case Integer():
            return (
                parameter.only_if is not None and parameter.role is None and parameter.name not in pattern.step_params
            )
    return True


def _limit_parameter(parameter: Parameter, pattern: Pattern) -> Parameter:
    """Return a parameter with the Step tab's default, limited to values that are small enough to step through."""
    start = pattern.step_params.get(parameter.name)
    if isinstance(parameter, Text):
        parameter = replace(parameter, maximum=min(parameter.maximum, MAX_ELEMENTS))
    if start is None:
        return parameter
    changes: dict[str, Any] = {"default": start}
    limit = MAX_ROWS if pattern.dimensions == 2 else MAX_ELEMENTS
    if isinstance(parameter, Integer) and parameter.maximum > limit:
        changes["maximum"] = parameter.minimum + (limit - parameter.minimum) // parameter.step * parameter.step
    return replace(parameter, **changes)
