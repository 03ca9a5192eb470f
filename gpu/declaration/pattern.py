"""What a pattern declares: it drives the window's forms, the command line, the benchmarks and the tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from gpu.declaration.benchmark import Benchmark
from gpu.declaration.distributed import DistributedProgram
from gpu.declaration.gpu_sizes import SizeRule
from gpu.declaration.presentation import CountsPresentation, Kind, Presentation
from gpu.declaration.roles import FROM_FILE, Role
from gpu.declaration.rounding import RoundingBound
from gpu.engines.base import Device, Engine
from gpu.errors import InputError
from gpu.files.arrays import read_array, read_npy
from gpu.warp import WARP

Array = npt.NDArray[Any]
Inputs = Mapping[str, Array]
Outputs = Mapping[str, Array]
Value = str | int | float | tuple[float, ...] | Array
Params = Mapping[str, Any]


@dataclass(frozen=True)
class Progress:
    """How far a run is: `fraction` in 0..1, or None where that is not known.

    `sample` gives a few hundred of the values as they are now, shape (columns,), for a picture, where there is one;
    `partials` all results of parts that one value is about to be made of, one a block.
    """

    fraction: float | None
    message: str = ""
    sample: Callable[[], Array] | None = None
    partials: Callable[[], Array] | None = None


def compiling(kernel: str) -> Progress:
    """Return what is told while the engine makes machine code of a kernel."""
    return Progress(None, f"compiling {kernel} for this processor")


HostProgram = Callable[[Engine, Inputs, Params], Generator[Progress, None, Outputs]]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One setting of a pattern.

    Parameters
    ----------
    name : str
        The name in `params`; the command line's option is `--name`.
    label, help, unit : str
        What a form shows: a short label, a sentence, the unit.
    only_if : tuple of (str, tuple of str) or None
        The name of a Choice and the options for which this parameter counts; None means always.
    role : Role or None
        What it is for, where somebody beside the pattern's own host programs asks that.
    """

    name: str
    label: str
    help: str = ""
    unit: str = ""
    only_if: tuple[str, tuple[str, ...]] | None = None
    role: Role | None = None

    @property
    def initial(self) -> Value:
        """The value a form starts with."""
        raise NotImplementedError

    def initial_with(self, given: Params) -> Value:
        """Return the value that stands for none, beside others that are given."""
        return self.initial

    def check(self, value: Any) -> Value:
        """Return `value` as this parameter holds it, from a value or from its text; InputError says what is allowed."""
        raise NotImplementedError

    def applies(self, params: Params) -> bool:
        """Whether this parameter counts, given the others."""
        return self.only_if is None or params.get(self.only_if[0]) in self.only_if[1]


@dataclass(frozen=True, kw_only=True)
class Choice(Parameter):
    """One of `options`, which a form calls by their `titles`, or else by their names as people write them."""

    options: tuple[str, ...]
    default: str
    titles: tuple[str, ...] = ()

    @property
    def initial(self) -> str:
        return self.default

    def check(self, value: Any) -> str:
        if str(value) not in self.options:
            raise InputError(f"--{self.name} is one of {', '.join(self.options)}, not {value!r}.")
        return str(value)


@dataclass(frozen=True, kw_only=True)
class Integer(Parameter):
    """A whole number from `minimum` to `maximum` in steps of `step`.

    Parameters
    ----------
    least : str
        What a form shows for the minimum.
    reason : str
        Why others are refused, as a sentence, where that is not plain.
    own : tuple of (str, int)
        Other defaults, by options of the Choice that `only_if` names.
    on_gpu : SizeRule or None
        The default on a GPU, where it is the one that says how much there is to do.
    """

    default: int
    minimum: int
    maximum: int
    step: int = 1
    least: str = ""
    reason: str = ""
    own: tuple[tuple[str, int], ...] = ()
    on_gpu: SizeRule | None = None

    @property
    def initial(self) -> int:
        return self.default

    def initial_with(self, given: Params) -> int:
        option = given.get(self.only_if[0]) if self.only_if is not None else None
        return dict(self.own).get(str(option), self.default)

    def check(self, value: Any) -> int:
        try:
            number = int(value)
            whole = number == float(value)
        except (TypeError, ValueError, OverflowError):
            number, whole = 0, False
        if not whole or not self.minimum <= number <= self.maximum or (number - self.minimum) % self.step:
            steps = f" in steps of {self.step}" if self.step > 1 else ""
            raise InputError(
                f"--{self.name} is a whole number from {self.minimum} to {self.maximum}{steps}, not {value!r}. "
                f"{self.reason}".rstrip()
            )
        return number


@dataclass(frozen=True, kw_only=True)
class Real(Parameter):
    """A finite number from `minimum` to `maximum`."""

    default: float
    minimum: float
    maximum: float

    @property
    def initial(self) -> float:
        return self.default

    def check(self, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not self.minimum <= number <= self.maximum:
            raise InputError(f"--{self.name} is a number from {self.minimum:g} to {self.maximum:g}, not {value!r}.")
        return number


NO_MIDDLE = "With an even number of rows none is in the middle, over the pixel that the result belongs to."


@dataclass(frozen=True, kw_only=True)
class Matrix(Parameter):
    """A square float32 matrix with an odd number of rows up to `maximum`; its text is the path of a .npy or .csv."""

    default: tuple[tuple[float, ...], ...]
    maximum: int

    @property
    def initial(self) -> Array:
        return np.array(self.default, np.float32)

    def check(self, value: Any) -> Array:
        matrix = _read_matrix(self.name, Path(value)) if isinstance(value, str | Path) else np.asarray(value)
        rows = matrix.shape[0] if matrix.ndim == 2 else 0
        if matrix.ndim != 2 or matrix.shape[1] != rows or rows % 2 == 0 or rows > self.maximum:
            shape = " x ".join(map(str, matrix.shape)) or "a single number"
            even = f" {NO_MIDDLE}" if matrix.ndim == 2 and rows and rows % 2 == 0 and matrix.shape[1] == rows else ""
            raise InputError(
                f"--{self.name} is a square matrix with an odd number of rows up to {self.maximum}, not {shape}.{even}"
            )
        if not np.issubdtype(matrix.dtype, np.number) or np.issubdtype(matrix.dtype, np.complexfloating):
            raise InputError(f"--{self.name} holds real numbers, not {matrix.dtype}.")
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(matrix, np.float32)
        if not np.isfinite(single).all():
            raise InputError(f"--{self.name} holds a value that is not a finite float32.")
        return single


def _read_matrix(name: str, path: Path) -> Array:
    try:
        return read_npy(path) if path.suffix.lower() == ".npy" else read_array(path, 2)
    except InputError as error:
        raise InputError(f"--{name}: {error.message}", advice=error.advice, detail=error.detail) from None


@dataclass(frozen=True)
class Textbook:
    """What a textbook says of n elements, with as many processors as it wants.

    Parameters
    ----------
    operations : int
        By all threads together: what `gpu.simulator.executor.work` counts.
    steps : int
        How many of them follow each other at least.
    peak : int
        The most of one step: as many threads as that take part.
    """

    operations: int
    steps: int
    peak: int

    @property
    def average(self) -> float | None:
        """The average parallelism, operations a step; None without steps."""
        return self.operations / self.steps if self.steps else None

    @classmethod
    def one_by_one(cls, operations: int) -> Textbook:
        """Return what one thread comes to that does them all: as many steps as operations."""
        return cls(operations, operations, min(operations, 1))


def _as_it_is(params: Params, result: Array) -> Array:
    """Compare all of a result."""
    return result


def _none(inputs: Inputs, params: Params) -> str:
    """Find no obstacle: most variants take whatever their pattern takes."""
    return ""


@dataclass(frozen=True)
class Variant:
    """One rung of a ladder.

    Parameters
    ----------
    name, title : str
        The name on the command line, and the one people read.
    run : HostProgram
        Launches the kernels: a generator that yields Progress between launches and returns the outputs.
    idea, limit : str
        What this rung does differently, and what still limits it: the reason for the next rung.
    kernels : tuple of str
        The `__global__` functions it launches.
    cautionary : str
        Why its results are wrong by design, as in a race; empty for a correct variant.
    textbook : callable or None
        (params, n) -> Textbook: what the textbook claims for n elements; None where that is what it claims of the
        whole pattern, or nothing. `Pattern.textbook_of` knows.
    comparable : callable
        (params, result) -> what of a result is compared with the reference, of which the same is taken: where a variant
        leaves the order open, all in one order.
    obstacle : callable
        (inputs, params) -> why this variant cannot take them, as a sentence; empty where it can. For a method that does
        less work because it asks for more, such as a filter that separates.
    threads : callable or None
        params -> the threads that a block has; None where these are as many as the parameter `block` says, if any.
    file : str
        The file under `kernels/` that holds its kernels, where that is not the pattern's.
    library : str
        The library whose routine it calls, such as "cuBLAS", to measure ours against: it has no kernels and no source,
        and runs where the engine has libraries.
    warpgroups : bool
        Whether four of its warps multiply tiles together, which not every device can.
    alone : bool
        Whether one thread does all of it, as a program without threads would: the smallest input that says everything
        of it is far smaller than that of threads, and larger ones take long.
    checked : callable or None
        params -> the rows and columns of matrices on which its kernels are checked, where what they do is another thing
        on fewer, or takes long on as many as others are checked on.
    most : int
        The most of `Pattern.growing` that it is begun with, where its work grows faster than that; 0 for any.
    lifted_by : str
        The name of the rung that lifts its limit, where that is not the next one. `Pattern.lifts` knows.
    """

    name: str
    title: str
    run: HostProgram
    idea: str
    limit: str
    kernels: tuple[str, ...]
    cautionary: str = ""
    textbook: Callable[[Params, int], Textbook] | None = None
    comparable: Callable[[Params, Array], Array] = _as_it_is
    obstacle: Callable[[Inputs, Params], str] = _none
    threads: Callable[[Params], int] | None = None
    file: str = ""
    library: str = ""
    warpgroups: bool = False
    alone: bool = False
    checked: Callable[[Params], int] | None = None
    most: int = 0
    lifted_by: str = ""

    def missing(self, device: Device) -> str:
        """Return why a device cannot run it, as a sentence; "" where it can."""
        if self.library:
            return device.no_library
        return device.no_warpgroups if self.warpgroups else ""


@dataclass(frozen=True)
class Cost:
    """The least a pattern must move and compute, whatever the variant."""

    bytes_read: int
    bytes_written: int
    flops: int


@dataclass(frozen=True)
class Work:
    """What throughput counts, such as pixels: `amount` of `unit`, in thousands of thousands or as `prefix` says."""

    amount: int
    unit: str
    prefix: Literal["M", "G"] = "M"


@dataclass(frozen=True)
class Pieces:
    """Elements as lengths that are laid end to end, each where the scan of them says.

    Parameters
    ----------
    whole : int
        What they are cut from; 0 where it is as long as they are together.
    unit : str
        What the lengths count, such as "inches".
    rest : str
        What is said of what no element takes, such as "left".
    inclusive : bool
        Whether the scan says where each ends, not where it begins.
    """

    whole: int
    unit: str
    rest: str = ""
    inclusive: bool = True


@dataclass(frozen=True)
class Preset:
    """A demonstration: settings under a title.

    Parameters
    ----------
    title, text : str
        What a list shows, and what there is to see, in a sentence or two.
    params : mapping
        Values of parameters; those left out take their defaults.
    variant : str
        The variant to begin with; "" keeps the one that is chosen.
    pieces : Pieces or None
        How the elements are drawn where they are lengths.
    """

    title: str
    text: str
    params: Params
    variant: str = ""
    pieces: Pieces | None = None


@dataclass(frozen=True)
class CountedText:
    """How a text is counted, by the names of a kernel's arrays.

    Parameters
    ----------
    characters : str
        The array whose elements are characters.
    bins : tuple of str
        Those whose elements are bins.
    names : tuple of str
        What the bins are called.
    """

    characters: str
    bins: tuple[str, ...]
    names: tuple[str, ...]


def _no_text(params: Params) -> CountedText | None:
    """Count no text."""
    return None


def with_role(parameters: Iterable[Parameter], role: Role) -> Parameter | None:
    """Return the parameter that has a role; None where there is none."""
    return next((parameter for parameter in parameters if parameter.role is role), None)


_Kind = TypeVar("_Kind", bound=Parameter)


def _as(kind: type[_Kind], parameter: Parameter | None) -> _Kind | None:
    """Return a parameter as one of the kind that its role has."""
    assert parameter is None or isinstance(parameter, kind), f"{parameter} is no {kind.__name__}"
    return parameter


def _accept(inputs: Inputs, params: Params) -> None:
    """Accept every combination of input and parameters."""


def _complete(given: Inputs, params: Params, seed: int) -> Inputs:
    """Add nothing to what is given."""
    return given


def _whole(inputs: Inputs) -> Inputs:
    """Cut nothing off."""
    return inputs


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A parallel algorithm: its input, its parameters, its ladder of variants, and how to know that they are right.

    Parameters
    ----------
    name, title, summary : str
        The name on the command line, the one people read, and what it does in a line of at most 45 characters.
    order : int
        Its place among the patterns, from 1; no two have the same.
    kernels : str
        The file under `kernels/` that holds the ladder; variants may name files of their own.
    presentation : Presentation
        What the window's Run tab shows of a result, and what is taken. Patterns of images take `image` and `maxval`;
        those of arrays take `values`, which has one dimension, those of matrices `values`, which has two, and perhaps
        more; those of bodies take `bodies` of shape (n, 7).
    parameters : tuple of Parameter
        No two with the same role.
    variants : tuple of Variant
        The ladder, first rung first.
    default_variant : str
        The variant that a run takes when none is named.
    result : str
        The name of the output that is verified and saved.
    reference : callable
        The result in float64 or integers, computed on the CPU by a library: (inputs, params) -> array.
    tolerance : callable
        The largest absolute error of a correct result, or of each of its elements: (inputs, params) -> float, array
        of the reference's shape, or RoundingBound.
    cost, work : callable
        (inputs, params) -> Cost and Work.
    present : callable
        The result as a file or a window shows it: (inputs, params, outputs) -> arrays by name. `picture` is uint8,
        shape (height, width) or (height, width, 3), for a screen; `image`, where the result is an image, has the
        input's dtype and levels, for a file and for a further pattern. An array pattern presents `input` and `output`
        as outlines: shape (2, columns), the least and the greatest value of each column's elements; `elements`, how
        many were given; and perhaps `kept`, the outline of those of the input that are in the result, NaN where none
        is.
    accept : callable
        Raises InputError where inputs and parameters do not go together.
    make_input : callable or None
        (params, seed) -> inputs, for a run that is given none; None where the input is always given.
    complete : callable
        (inputs, params, seed) -> inputs, with what a run takes beside the values that were read from a file. It leaves
        as it is what is whole.
    step_params : mapping
        Values of parameters that make a run small enough to be watched step by step.
    textbook : callable or None
        (params, n) -> Textbook: what the textbook claims for n elements, whatever the variant; of an image the elements
        are its pixels. A variant with another algorithm says so itself.
    sequential : callable or None
        (params, n) -> int: the operations of one thread that does all of n elements alone; work efficiency is what
        part of a variant's operations that is.
    step_input : callable
        Cuts inputs down to what can be watched: inputs -> inputs.
    presets : tuple of Preset
        Demonstrations.
    helpers : mapping of str to tuple of str
        The `__global__` functions that measure or draw, and belong to no variant, by their file under `kernels/`.
    lessons : tuple of str
        What the window has a tab of its own for: `ATOMICS`.
    benchmark : Benchmark
        What `bench` measures it on, and beside whom.
    names : callable or None
        params -> what the values of the result are called; nothing where they go by their places.
    text : callable
        params -> how a text is counted, for a picture of it; None where none is.
    side_on_gpu : SizeRule or None
        Of images, the side from which variants can be compared on a GPU.
    distributed : DistributedProgram or None
        How it runs over several devices; None where it runs on one only.
    """

    name: str
    title: str
    summary: str
    order: int
    kernels: str
    presentation: Presentation
    parameters: tuple[Parameter, ...]
    variants: tuple[Variant, ...]
    default_variant: str
    result: str
    reference: Callable[[Inputs, Params], Array]
    tolerance: Callable[[Inputs, Params], float | Array | RoundingBound]
    cost: Callable[[Inputs, Params], Cost]
    work: Callable[[Inputs, Params], Work]
    present: Callable[[Inputs, Params, Outputs], Outputs]
    accept: Callable[[Inputs, Params], None] = field(default=_accept)
    make_input: Callable[[Params, int], Inputs] | None = None
    complete: Callable[[Inputs, Params, int], Inputs] = field(default=_complete)
    step_params: Params = field(default_factory=dict)
    textbook: Callable[[Params, int], Textbook] | None = None
    sequential: Callable[[Params, int], int] | None = None
    step_input: Callable[[Inputs], Inputs] = field(default=_whole)
    presets: tuple[Preset, ...] = ()
    helpers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lessons: tuple[str, ...] = ()
    benchmark: Benchmark = field(default_factory=Benchmark)
    names: Callable[[Params], tuple[str, ...]] | None = None
    text: Callable[[Params], CountedText | None] = field(default=_no_text)
    side_on_gpu: SizeRule | None = None
    distributed: DistributedProgram | None = None

    def parameter(self, role: Role) -> Parameter | None:
        """Return the parameter that has a role; None where there is none."""
        return with_role(self.parameters, role)

    def textbook_of(self, variant: Variant, params: Params, n: int) -> Textbook | None:
        """Return what the textbook claims of a variant for n elements; None where it claims nothing."""
        claim = variant.textbook or self.textbook
        return claim(params, n) if claim is not None and not variant.library else None

    @property
    def first_rung(self) -> Variant:
        """The rung that a ladder is begun at: the first one whose work threads share."""
        return next(each for each in self.variants if not each.alone)

    def over_devices(self) -> DistributedProgram:
        """Return how it runs over several devices; InputError where it does not."""
        if self.distributed is None:
            raise InputError(f"{self.title} runs on one device only.", advice="Leave out --engine dask.")
        return self.distributed

    def lifts(self, variant: Variant) -> Variant | None:
        """Return the rung that lifts a variant's limit; None where the hardware is the limit, or a library's ours."""
        if variant.lifted_by:
            return self.variant(variant.lifted_by)
        following = self.variants[self.variants.index(variant) + 1 :][:1]
        return next((each for each in following if not (each.library or each.cautionary or variant.library)), None)

    @property
    def size(self) -> Integer | None:
        """The parameter that says how many elements, columns or bodies are made."""
        return _as(Integer, self.parameter(Role.SIZE))

    @property
    def block(self) -> Choice | None:
        """The parameter that says how many threads a block has."""
        return _as(Choice, self.parameter(Role.BLOCK))

    def block_sizes(self, params: Mapping[str, Any]) -> tuple[list[int], int]:
        """Return the threads that a block can have, whole warps, and those of `params`; nothing where it is not so."""
        block = self.block
        if block is None or not str(params[block.name]).isdigit():
            return [], 0
        sizes = [int(each) for each in block.options if each.isdigit() and int(each) >= WARP]
        chosen = int(params[block.name])
        return (sizes, chosen) if chosen in sizes else ([], 0)

    @property
    def source(self) -> Choice | None:
        """The parameter that says how the input is made, or that a file gives it."""
        return _as(Choice, self.parameter(Role.SOURCE))

    @property
    def subject(self) -> Choice | None:
        """The parameter that says which kind of input is taken, where there are several."""
        return _as(Choice, self.parameter(Role.SUBJECT))

    @property
    def growing(self) -> Integer | None:
        """The parameter whose default grows with a GPU; None where none does."""
        integers = (each for each in self.parameters if isinstance(each, Integer))
        return next((each for each in integers if each.on_gpu is not None), None)

    def on(self, device: Device) -> Pattern:
        """Return the pattern with the defaults that suit a device: on a GPU enough to do for its times to mean much."""
        grown, growing = self.comparable_from(device), self.growing
        if growing is None or not grown:
            return self
        changed = (replace(each, default=grown) if each is growing else each for each in self.parameters)
        return replace(self, parameters=tuple(changed))

    def comparable_from(self, device: Device) -> int:
        """Return the value of `growing` from which variants can be compared on a device; 0 where that is no GPU."""
        growing = self.growing
        if growing is None or growing.on_gpu is None or device.executor != "gpu":
            return 0
        return min(growing.on_gpu(device.multiprocessors), growing.maximum)

    def comparable(self, inputs: Inputs, params: Params, device: Device) -> tuple[str, int, int]:
        """Return how large a run is, and how large it must be for variants to be compared on a device.

        Returns
        -------
        str
            The parameter that both are values of; "" where they are the side of an image.
        int, int
            0 where there is no such size, as of a file.
        """
        if "image" in inputs:
            if self.side_on_gpu is None or device.executor != "gpu":
                return "", 0, 0
            return "", math.isqrt(math.prod(inputs["image"].shape[:2])), self.side_on_gpu(device.multiprocessors)
        growing = self.growing
        if growing is None or not growing.applies(params) or self.from_file(params):
            return "", 0, 0
        return growing.name, params[growing.name], self.comparable_from(device)

    def value(self, params: Params, role: Role) -> Any:
        """Return the value of the parameter that has a role; None where there is none, or it does not count here."""
        parameter = self.parameter(role)
        return params.get(parameter.name) if parameter is not None and parameter.applies(params) else None

    def elements(self, params: Params) -> int | None:
        """Return how many elements are made or typed; None where something else says it."""
        typed = self.value(params, Role.VALUES)
        size = len(typed.replace(",", " ").split()) if typed is not None else self.value(params, Role.SIZE)
        return None if size is None else int(size)

    def with_value(self, role: Role, value: Any) -> dict[str, Any]:
        """Return a value under the name of the parameter that has a role; nothing where there is none."""
        parameter = self.parameter(role)
        return {} if parameter is None else {parameter.name: value}

    def takes(self, params: Params) -> Kind:
        """Return what a run takes with these parameters."""
        if isinstance(self.presentation, CountsPresentation) and self.subject is not None:
            return self.presentation.kinds[params[self.subject.name]]
        return self.presentation.kind

    def from_file(self, params: Params) -> bool:
        """Whether a run with these parameters takes values that come from a file."""
        return bool(self.value(params, Role.SOURCE) == FROM_FILE)

    def for_file(self, kind: Kind, text: str = "") -> dict[str, Any]:
        """Return the settings with which a run takes what a file holds; of a text, the text."""
        given: dict[str, Any] = {}
        if isinstance(self.presentation, CountsPresentation) and self.subject is not None:
            kinds = self.presentation.kinds
            given[self.subject.name] = next(option for option in self.subject.options if kinds[option] == kind)
        if kind == "text":
            given |= self.with_value(Role.TEXT, text)
        if kind == "values":
            given |= self.with_value(Role.SOURCE, FROM_FILE)
        return given

    @property
    def of_images(self) -> bool:
        """Whether it is one of images, even if it may take something else."""
        return self.presentation.kind == "image"

    @property
    def dimensions(self) -> int:
        """How many dimensions the numbers have that it takes; 0 where it takes none."""
        return self.presentation.dimensions

    def variant(self, name: str) -> Variant:
        """Return the variant of that name, or raise InputError that lists the names."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        names = ", ".join(variant.name for variant in self.variants)
        raise InputError(f"{self.title} has no variant {name!r}; there are {names}.")

    @property
    def files(self) -> tuple[str, ...]:
        """Every kernel file of the ladder, the pattern's own first."""
        return tuple(dict.fromkeys([self.kernels, *(variant.file for variant in self.variants if variant.file)]))

    def file_of(self, variant: str) -> str:
        """Return the kernel file of the variant of that name; "" where it is a library's."""
        return "" if self.variant(variant).library else self.variant(variant).file or self.kernels

    def check(self, given: Params) -> dict[str, Any]:
        """Return every parameter's value, defaults for those not given; raise InputError for a bad or unknown one."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                raise InputError(f"{self.title} has no parameter {name!r}; there are {', '.join(known)}.")
        return {
            name: parameter.check(given[name] if name in given else parameter.initial_with(given))
            for name, parameter in known.items()
        }

    def inputs(self, given: Inputs, params: Params, seed: int) -> Inputs:
        """Return `given` and what goes with it, or an input that is made from `params` and `seed`.

        Raises
        ------
        InputError
            Where nothing is given and nothing can be made.
        """
        if given:
            return self.complete(given, params, seed)
        if self.make_input is None:
            raise InputError(f"{self.title} needs an image, and none was given.")
        return self.make_input(params, seed)
