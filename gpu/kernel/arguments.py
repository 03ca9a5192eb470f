"""Kernel arguments from Python arrays and numbers, and from command-line words such as "random:256:7"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import InputError
from gpu.files.arrays import read_npy
from gpu.files.text import read_text
from gpu.kernel.textures import read_texture
from gpu.simulator.executor.launches.arguments import Argument
from gpu.simulator.executor.state.memory import POISON
from gpu.simulator.types import ArrayOf, Pointer, Scalar, Struct, Type, Void, decay, leaves

Array = npt.NDArray[Any]
Parameters = Sequence[tuple[str, Type]]

MAXIMUM_BYTES = 1 << 31
"""The largest array that a specification may request, in bytes."""

SPECIFICATIONS = "zeros:N, full:N:V, arange:N, random:N[:SEED], 1,2,3, text:LETTERS, file:PATH.npy, empty:N or null"

_RANDOM_INTEGERS = 100
"""Random integers are below this limit: it fits every type and keeps their sums small."""


class _UnfitError(Exception):
    """Explain why a value does not fit a type; the text completes a sentence that begins with the argument's name."""


@dataclass
class BoundArguments:
    """The arguments of a launch.

    Parameters
    ----------
    values : list
        The arguments for `SimulatedKernel.launch`; for a pointer, the bytes of its array or None.
    arrays : dict of int to array
        The same memory as typed, shaped arrays, by the argument's index from 0.
    uninitialized : list of str
        The names of parameters for arrays that start uninitialized.
    """

    values: list[Argument] = field(default_factory=list)
    arrays: dict[int, Array] = field(default_factory=dict)
    uninitialized: list[str] = field(default_factory=list)


def bind_arguments(kernel: str, arguments: Sequence[Any], parameters: Parameters) -> BoundArguments:
    """Create a kernel's arguments.

    Parameters
    ----------
    kernel : str
        The kernel's name, for error messages.
    arguments : sequence
        For each parameter an array (copied; the same array passed twice shares one copy), a number, None for a null
        pointer, or a specification such as "zeros:256".
    parameters : sequence
        The name and type of each parameter.

    Raises
    ------
    InputError
        The number of arguments differs from the number of parameters, or an argument does not fit its type.
    """
    if len(arguments) != len(parameters):
        expected = ", ".join(f"{type} {name}" for name, type in parameters) or "none"
        raise InputError(f"{kernel} takes {_format_count(len(parameters))} ({expected}), not {len(arguments)}.")
    bound = BoundArguments()
    copies: dict[int, tuple[Array, Array]] = {}
    for number, (argument, (name, type)) in enumerate(zip(arguments, parameters, strict=True)):
        try:
            if not isinstance(type, Pointer):
                bound.values.append(_to_value(argument, type))
                continue
            if argument is None or (isinstance(argument, str) and argument == "null"):
                bound.values.append(None)
                continue
            if isinstance(argument, str) and argument.startswith("texture:"):
                if type.element != Scalar("uint8"):
                    raise _UnfitError(f"is not a texture object, but {argument!r} is one")
                bound.values.append(read_texture(argument.removeprefix("texture:")))
                continue
            if id(argument) not in copies or isinstance(argument, str):
                array = _to_array(argument, type.element)
                copies[id(argument)] = array, array.reshape(-1).view(np.uint8)
            bound.arrays[number], memory = copies[id(argument)]
            bound.values.append(memory)
            if isinstance(argument, str) and argument.startswith("empty:"):
                bound.uninitialized.append(name)
        except _UnfitError as reason:
            raise InputError(f"Argument {number} ({type} {name}) {reason}.") from None
    return bound


def to_variable_bytes(name: str, value: Any, type: Type) -> Array:
    """Return the bytes of the initial value of a module's variable.

    Parameters
    ----------
    name : str
        The variable's name, for error messages.
    value
        For an array, an array or a specification; otherwise a number.

    Raises
    ------
    InputError
        The value does not fit the type.
    """
    element = decay(type)
    try:
        if isinstance(element, Pointer):
            raise _UnfitError("contains pointers, which cannot be set from the host")
        if not isinstance(type, ArrayOf):
            return np.frombuffer(_to_value(value, type).tobytes(), np.uint8)
        if isinstance(value, str) and value.startswith(("empty:", "null")):
            raise _UnfitError(f"needs values, but {value!r} provides none")
        if isinstance(value, str) and _is_number(value):
            value += ","
        data = np.ascontiguousarray(_to_array(value, element)).reshape(-1).view(np.uint8)
        if data.size > type.size:
            raise _UnfitError(f"has {_format_count(type.count, 'element')}, but got {data.size // element.size}")
    except _UnfitError as reason:
        raise InputError(f"The variable {name} ({type}) {reason}.") from None
    return data


def dtype_of(type: Type) -> np.dtype[Any]:
    """Return the NumPy dtype of a type's elements; a struct of equal members, such as float4, becomes a subarray."""
    match type:
        case Scalar():
            return type.dtype
        case Pointer():
            return np.dtype(np.int64)
        case Void():
            return np.dtype(np.uint8)
        case ArrayOf(element, length):
            return np.dtype((dtype_of(element), (length,)))
    if type.name == "__half":
        return np.dtype(np.float16)
    parts = leaves(type)
    kinds = {leaf.dtype for _, leaf in parts if isinstance(leaf, Scalar)}
    if len(kinds) == 1 and all(isinstance(leaf, Scalar) for _, leaf in parts):
        kind = kinds.pop()
        if type.size == len(parts) * kind.itemsize:
            return np.dtype((kind, (len(parts),))) if len(parts) > 1 else kind
    names, formats, offsets = [], [], []
    for name, offset, inner in _members(type):
        names.append(name)
        formats.append(dtype_of(inner))
        offsets.append(offset)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": type.size})


def _members(struct: Struct) -> list[tuple[str, int, Type]]:
    """Return the members of a struct and of its base classes: (name, offset, type)."""
    members: list[tuple[str, int, Type]] = []
    for member in struct.fields:
        if not member.name and isinstance(member.type, Struct):
            members += [(name, member.offset + offset, type) for name, offset, type in _members(member.type)]
        else:
            members.append((member.name, member.offset, member.type))
    return members


def _to_array(argument: Any, element: Type) -> Array:
    if isinstance(argument, np.ndarray) and argument.ndim:
        return _copy_array(argument, element)
    if isinstance(argument, str):
        return _array_from_specification(argument, element)
    description = f"the number {argument}" if isinstance(argument, int | float | np.generic) else f"{argument!r}"
    raise _UnfitError(f"is a pointer, which takes a NumPy array or one of {SPECIFICATIONS}, not {description}")


def _copy_array(array: Array, element: Type) -> Array:
    dtype = dtype_of(element)
    actual = array.dtype
    if not isinstance(element, Void):
        is_compatible = actual == dtype.base or (
            actual.kind in "iu" and dtype.base.kind in "iu" and actual.itemsize == dtype.base.itemsize
        )
        if dtype.base.names is not None:
            is_compatible = actual.itemsize in (1, element.size)
        if not is_compatible:
            raise _UnfitError(f"takes an array of {_format_dtype(dtype.base)}, not of {actual}")
    if actual.hasobject or not actual.isnative:
        raise _UnfitError(f"takes an array of plain numbers in this machine's byte order, not of {actual}")
    if element.size and array.nbytes % element.size:
        raise _UnfitError(f"has elements of {element.size} bytes, and {array.nbytes} bytes is not a multiple of that")
    return np.array(array, order="C")


def _array_from_specification(text: str, element: Type) -> Array:
    word, colon, parameters = text.partition(":")
    if word == "file" and colon:
        return _read_array(parameters, element)
    if word == "text" and colon:
        return _encode_characters(parameters, element)
    if "," in text and not colon:
        return _array_from_list(text, element)
    parts = parameters.split(":")
    minimum, maximum = {"zeros": (1, 1), "empty": (1, 1), "full": (2, 2), "arange": (1, 1), "random": (1, 2)}.get(
        word, (0, 0)
    )
    if not colon or not maximum:
        reason = "a number" if _is_number(text) else "none of these"
        raise _UnfitError(f"is a pointer, which takes {SPECIFICATIONS}; {text!r} is {reason}")
    if not minimum <= len(parts) <= maximum:
        form = {"full": "full:N:V", "random": "random:N[:SEED]"}.get(word, f"{word}:N")
        raise _UnfitError(f"takes {form}, not {text!r}")
    array = _allocate_zeros(_parse_count(parts[0]), element)
    if word == "zeros":
        return array
    if word == "empty":
        array.reshape(-1).view(np.uint8).fill(POISON)
        return array
    if any(isinstance(leaf, Pointer) for _, leaf in leaves(element)):
        raise _UnfitError(f"contains pointers, which only zeros:N can fill, not {text!r}")
    if word == "random":
        seed = _parse_count(parts[1], "SEED", minimum=0) if len(parts) > 1 else 0
        generator = np.random.default_rng(seed)
        for part in _leaf_views(array):
            part[...] = _fill_random(generator, part)
        return array
    for part in _leaf_views(array):
        if word == "full":
            part[...] = _convert_number(_parse_number(parts[1], part.dtype), part.dtype)
        else:
            _convert_number(array.shape[0] - 1, part.dtype)
            part[...] = np.arange(array.shape[0]).reshape(-1, *[1] * (part.ndim - 1))
    return array


def _encode_characters(text: str, element: Type) -> Array:
    """Return the characters of a text, or of the file named after an @, without a terminating zero."""
    dtype = dtype_of(element)
    if dtype not in (np.int8, np.uint8):
        raise _UnfitError(f"takes {_format_dtype(dtype.base)}, but a text consists of chars")
    if text.startswith("@"):
        try:
            text = read_text(text[1:])
        except InputError as error:
            raise _UnfitError(f"cannot be read from a file: {error.message.removesuffix('.')}") from None
    if not text:
        raise _UnfitError("is a text without characters")
    return np.frombuffer(text.encode(errors="surrogateescape"), dtype).copy()


def _array_from_list(text: str, element: Type) -> Array:
    """Return an array of the comma-separated numbers in a text."""
    dtype = dtype_of(element)
    words = text.removesuffix(",").split(",")
    if dtype.base.names is not None or any(isinstance(leaf, Pointer) for _, leaf in leaves(element)):
        raise _UnfitError(f"takes {_format_dtype(dtype.base)}, which a list of numbers cannot describe")
    values = np.array(
        [_convert_number(_parse_number(word.strip(), dtype.base), dtype.base) for word in words], dtype.base
    )
    per_element = element.size // dtype.base.itemsize
    if values.size % per_element:
        raise _UnfitError(f"has {per_element} numbers per element, and {values.size} is not a multiple of that")
    return values.reshape(-1, *dtype.shape)


def _allocate_zeros(count: int, element: Type) -> Array:
    if count * element.size > MAXIMUM_BYTES:
        raise _UnfitError(
            f"cannot have {count} elements of {element.size} bytes: the limit is {MAXIMUM_BYTES >> 30} GiB per array"
        )
    return np.zeros(count, dtype_of(element))


def _parse_count(text: str, name: str = "N", *, minimum: int = 1) -> int:
    try:
        count = int(text)
    except ValueError:
        raise _UnfitError(f"needs a whole number for {name}, not {text!r}") from None
    if count < minimum:
        raise _UnfitError(f"needs {name} to be at least {minimum}, not {count}")
    return count


def _leaf_views(array: Array) -> list[Array]:
    """Return the leaf members of an array of structs as views; any other array is returned as the only item."""
    if array.dtype.names is None:
        return [array]
    return [part for name in array.dtype.names for part in _leaf_views(array[name])]


def _fill_random(generator: np.random.Generator, template: Array) -> Array:
    if template.dtype.kind == "f":
        return generator.random(template.shape).astype(template.dtype)
    limit = 2 if template.dtype.kind == "b" else _RANDOM_INTEGERS
    return generator.integers(0, limit, template.shape).astype(template.dtype)


def _read_array(name: str, element: Type) -> Array:
    try:
        values = read_npy(name)
    except InputError as error:
        raise _UnfitError(f"cannot be read from a file: {error.message.removesuffix('.')}") from None
    if not values.size:
        raise _UnfitError(f"cannot be read from {name!r}, which contains no elements")
    dtype = dtype_of(element)
    if dtype.base.names is not None:
        if values.dtype.itemsize not in (1, element.size) or values.nbytes % element.size:
            raise _UnfitError(
                f"needs elements of {element.size} bytes, but {name!r} contains {values.size} of {values.dtype}"
            )
        return np.ascontiguousarray(values).reshape(-1).view(np.uint8).view(dtype)
    flat = _convert_array(np.ascontiguousarray(values).reshape(-1), dtype.base, f"{name!r} contains")
    per_element = element.size // dtype.base.itemsize
    if flat.size % per_element:
        raise _UnfitError(
            f"has {per_element} numbers per element, and the {flat.size} in {name!r} are not a multiple of that"
        )
    return flat.reshape(-1, *dtype.shape)


def _convert_array(values: Array, dtype: np.dtype[Any], subject: str) -> Array:
    """Convert values to a type that can represent them; fractions may be rounded, as in a literal."""
    kinds = "iubf" if dtype.kind == "f" else "iub"
    if values.dtype.kind not in kinds:
        raise _UnfitError(f"takes {_format_dtype(dtype)}, but {subject} {values.dtype}")
    finite = values[np.isfinite(values)]
    for extreme in (finite.min(), finite.max()) if finite.size else ():
        _convert_number(extreme.item(), dtype, subject)
    return values.astype(dtype)


def _to_value(argument: Any, type: Type) -> np.generic:
    """Return the value of a parameter that is not a pointer."""
    if isinstance(type, Struct):
        return _to_struct(argument, type)
    assert isinstance(type, Scalar)
    if isinstance(argument, np.ndarray) and argument.ndim == 0:
        argument = argument[()]
    if isinstance(argument, str):
        argument = _parse_number(argument, type.dtype)
    if isinstance(argument, np.ndarray):
        raise _UnfitError(f"is a number, not an array of {argument.dtype}")
    if isinstance(argument, np.generic):
        argument = argument.item()
    if not isinstance(argument, int | float):
        raise _UnfitError(f"is a number, not {argument!r}")
    return _convert_number(argument, type.dtype)


def _to_struct(argument: Any, type: Struct) -> np.generic:
    """Return a struct by value, from its bytes or from one number per leaf member."""
    if isinstance(argument, np.ndarray | np.void):
        if argument.nbytes != type.size:
            raise _UnfitError(f"has {type.size} bytes, not {argument.nbytes}")
        return _void(argument.tobytes())
    numbers = argument
    if isinstance(argument, str):
        numbers = [word.strip() for word in argument.split(",")] if argument.strip() else []
    elif isinstance(argument, int | float):
        numbers = [argument]
    parts = leaves(type)
    if not isinstance(numbers, Sequence) or len(numbers) != len(parts):
        raise _UnfitError(
            f"is a struct of {_format_count(len(parts), 'number')}, separated by commas, not {argument!r}"
        )
    data = bytearray(type.size)
    for (offset, leaf), number in zip(parts, numbers, strict=True):
        if isinstance(leaf, Pointer):
            raise _UnfitError("contains a pointer, so it cannot be passed by value")
        dtype = np.dtype(np.float16) if type.name == "__half" else leaf.dtype
        value = _convert_number(_parse_number(number, dtype) if isinstance(number, str) else number, dtype)
        data[offset : offset + leaf.size] = value.tobytes()
    return _void(bytes(data))


def _void(data: bytes) -> np.generic:
    value: np.generic = np.frombuffer(data, f"V{len(data)}")[0]
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_number(text: str, dtype: np.dtype[Any]) -> int | float:
    """Parse a number, such as 5, 0x1F, 1e6, -0.5 or inf; booleans also accept true and false."""
    if dtype.kind == "b" and text in ("true", "false"):
        return text == "true"
    readers: tuple[Callable[[str], int | float], ...] = (int, lambda word: int(word, 0), float)
    for read in readers:
        try:
            number = read(text)
        except ValueError:
            continue
        if isinstance(number, float):
            if np.isinf(number) and "inf" not in text.lower():
                raise _UnfitError(f"takes {_format_dtype(dtype)}, but got {text}, which is too large")
            return int(number) if dtype.kind != "f" and number.is_integer() else number
        return number
    if text.partition(":")[0] in ("zeros", "empty", "full", "arange", "random", "text", "file", "null"):
        raise _UnfitError(f"is a number, not a pointer, but {text!r} creates an array")
    raise _UnfitError(f"needs a number, not {text!r}")


def _convert_number(value: float, dtype: np.dtype[Any], subject: str = "") -> np.generic:
    """Convert a number to a type that can represent it."""
    subject = subject or "got"
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            try:
                number = dtype.type(value)
            except OverflowError:
                number = dtype.type(np.inf)
        if np.isinf(number) and value not in (np.inf, -np.inf):
            raise _UnfitError(f"takes {_format_dtype(dtype)}, but {subject} {value}, which is too large")
        return number  # type: ignore[no-any-return]
    if not isinstance(value, int):
        raise _UnfitError(f"takes {_format_dtype(dtype)}, but {subject} {value!r}, a floating-point number")
    low, high = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if not low <= value <= high:
        raise _UnfitError(f"takes {_format_dtype(dtype)}, {low} to {high}, but {subject} {value}")
    return dtype.type(value)  # type: ignore[no-any-return]


def _format_dtype(dtype: np.dtype[Any]) -> str:
    return f"structs of {dtype.itemsize} bytes" if dtype.names is not None else str(dtype)


def _format_count(count: int, noun: str = "argument") -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
