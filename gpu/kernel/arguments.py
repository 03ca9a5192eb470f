"""What a kernel is launched with: arrays and numbers from Python, and words such as "random:256:7" from a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import InputError
from gpu.files.arrays import read_npy
from gpu.files.text import read_text
from gpu.kernel.textures import read_texture
from gpu.simulator.executor.launch import Argument
from gpu.simulator.executor.memory import POISON
from gpu.simulator.types import ArrayOf, Pointer, Scalar, Struct, Type, Void, leaves

Array = npt.NDArray[Any]
Parameters = Sequence[tuple[str, Type]]

MAXIMUM_BYTES = 1 << 31
"""The largest array that a specification may ask for."""

SPECIFICATIONS = "zeros:N, full:N:V, arange:N, random:N[:SEED], 1,2,3, text:LETTERS, file:PATH.npy, empty:N or null"

_RANDOM_INTEGERS = 100
"""Random integers are below this, which fits every type, and sums of which stay small."""


class _UnfitError(Exception):
    """Why a value is not what a type can hold: the end of a sentence that begins with the argument's name."""


@dataclass
class Bound:
    """A launch's arguments.

    Parameters
    ----------
    values : list
        What `SimulatedKernel.launch` takes: of a pointer the bytes of its array, or None.
    arrays : dict of int to array
        The same memory as arrays with type and shape, by the argument's number from 0.
    uninitialized : list of str
        The parameters whose arrays start without values.
    """

    values: list[Argument] = field(default_factory=list)
    arrays: dict[int, Array] = field(default_factory=dict)
    uninitialized: list[str] = field(default_factory=list)


def bind(kernel: str, arguments: Sequence[Any], parameters: Parameters) -> Bound:
    """Make a kernel's arguments.

    Parameters
    ----------
    kernel : str
        The kernel's name, for messages.
    arguments : sequence
        For each parameter an array (copied; one that is given twice is one memory), a number, None for a null pointer,
        or a specification such as "zeros:256".
    parameters : sequence
        The name and type of each parameter.

    Raises
    ------
    InputError
        The arguments are not as many as the parameters, or one is not of its parameter's type.
    """
    if len(arguments) != len(parameters):
        wanted = ", ".join(f"{type} {name}" for name, type in parameters) or "none"
        raise InputError(f"{kernel} takes {_number(len(parameters))} ({wanted}), not {len(arguments)}.")
    bound = Bound()
    copies: dict[int, tuple[Array, Array]] = {}
    for number, (argument, (name, type)) in enumerate(zip(arguments, parameters, strict=True)):
        try:
            if not isinstance(type, Pointer):
                bound.values.append(_by_value(argument, type))
                continue
            if argument is None or (isinstance(argument, str) and argument == "null"):
                bound.values.append(None)
                continue
            if isinstance(argument, str) and argument.startswith("texture:"):
                if type.element != Scalar("uint8"):
                    raise _UnfitError(f"is no texture object, and {argument!r} is one")
                bound.values.append(read_texture(argument.removeprefix("texture:")))
                continue
            if id(argument) not in copies or isinstance(argument, str):
                made = _array(argument, type.element)
                copies[id(argument)] = made, made.reshape(-1).view(np.uint8)
            bound.arrays[number], memory = copies[id(argument)]
            bound.values.append(memory)
            if isinstance(argument, str) and argument.startswith("empty:"):
                bound.uninitialized.append(name)
        except _UnfitError as reason:
            raise InputError(f"Argument {number} ({type} {name}) {reason}.") from None
    return bound


def variable_of(name: str, value: Any, type: Type) -> Array:
    """Return the bytes of what a variable of a module is set to.

    Parameters
    ----------
    name : str
        The variable's, for messages.
    value
        As of an argument: for an array an array or a specification, for anything else a number.
    type : Type
        The variable's.

    Raises
    ------
    InputError
        The value does not fit the type.
    """
    element = type.innermost if isinstance(type, ArrayOf) else type
    try:
        if isinstance(element, Pointer):
            raise _UnfitError("holds pointers, which cannot be set from outside")
        if not isinstance(type, ArrayOf):
            return np.frombuffer(_by_value(value, type).tobytes(), np.uint8)
        if isinstance(value, str) and value.startswith(("empty:", "null")):
            raise _UnfitError(f"is filled with values, of which {value!r} has none")
        if isinstance(value, str) and _is_number(value):
            value += ","
        data = np.ascontiguousarray(_array(value, element)).reshape(-1).view(np.uint8)
        if data.size > type.size:
            raise _UnfitError(f"has {_number(type.count, 'element')}, and {data.size // element.size} are given")
    except _UnfitError as reason:
        raise InputError(f"The variable {name} ({type}) {reason}.") from None
    return data


def dtype_of(type: Type) -> np.dtype[Any]:
    """Return NumPy's type for elements of a type: of a struct of like members, such as float4, an array of them."""
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
    """Return the members of a struct and of its base classes: name, offset, type."""
    found: list[tuple[str, int, Type]] = []
    for member in struct.fields:
        if not member.name and isinstance(member.type, Struct):
            found += [(name, member.offset + offset, type) for name, offset, type in _members(member.type)]
        else:
            found.append((member.name, member.offset, member.type))
    return found


def _array(argument: Any, element: Type) -> Array:
    if isinstance(argument, np.ndarray) and argument.ndim:
        return _copied(argument, element)
    if isinstance(argument, str):
        return _specified(argument, element)
    given = f"the number {argument}" if isinstance(argument, int | float | np.generic) else f"{argument!r}"
    raise _UnfitError(f"is a pointer, which takes a NumPy array or one of {SPECIFICATIONS}, not {given}")


def _copied(array: Array, element: Type) -> Array:
    dtype = dtype_of(element)
    given = array.dtype
    if not isinstance(element, Void):
        same = given == dtype.base or (
            given.kind in "iu" and dtype.base.kind in "iu" and given.itemsize == dtype.base.itemsize
        )
        if dtype.base.names is not None:
            same = given.itemsize in (1, element.size)
        if not same:
            raise _UnfitError(f"takes an array of {_named(dtype.base)}, not of {given}")
    if given.hasobject or not given.isnative:
        raise _UnfitError(f"takes an array of plain numbers in this machine's byte order, not of {given}")
    if element.size and array.nbytes % element.size:
        raise _UnfitError(f"has elements of {element.size} bytes, of which {array.nbytes} bytes are no whole number")
    return np.array(array, order="C")


def _specified(text: str, element: Type) -> Array:
    word, colon, rest = text.partition(":")
    if word == "file" and colon:
        return _from_file(rest, element)
    if word == "text" and colon:
        return _letters(rest, element)
    if "," in text and not colon:
        return _listed(text, element)
    parts = rest.split(":")
    least, most = {"zeros": (1, 1), "empty": (1, 1), "full": (2, 2), "arange": (1, 1), "random": (1, 2)}.get(
        word, (0, 0)
    )
    if not colon or not most:
        what = "a number" if _is_number(text) else "no such thing"
        raise _UnfitError(f"is a pointer, which takes {SPECIFICATIONS}; {text!r} is {what}")
    if not least <= len(parts) <= most:
        form = {"full": "full:N:V", "random": "random:N[:SEED]"}.get(word, f"{word}:N")
        raise _UnfitError(f"takes {form}, not {text!r}")
    array = _zeros(_count(parts[0]), element)
    if word == "zeros":
        return array
    if word == "empty":
        array.reshape(-1).view(np.uint8).fill(POISON)
        return array
    if any(isinstance(leaf, Pointer) for _, leaf in leaves(element)):
        raise _UnfitError(f"holds pointers, which only zeros:N can fill, not {text!r}")
    if word == "random":
        seed = _count(parts[1], "SEED", least=0) if len(parts) > 1 else 0
        generator = np.random.default_rng(seed)
        for part in _parts(array):
            part[...] = _random(generator, part)
        return array
    for part in _parts(array):
        if word == "full":
            part[...] = _fitted_number(_parsed(parts[1], part.dtype), part.dtype)
        else:
            _fitted_number(array.shape[0] - 1, part.dtype)
            part[...] = np.arange(array.shape[0]).reshape(-1, *[1] * (part.ndim - 1))
    return array


def _letters(text: str, element: Type) -> Array:
    """Return the characters of a text, or of the file behind an @, with no zero at the end."""
    dtype = dtype_of(element)
    if dtype not in (np.int8, np.uint8):
        raise _UnfitError(f"takes {_named(dtype.base)}, and a text is made of chars")
    if text.startswith("@"):
        try:
            text = read_text(text[1:])
        except InputError as error:
            raise _UnfitError(f"is to be read from a file: {error.message.removesuffix('.')}") from None
    if not text:
        raise _UnfitError("is a text without characters")
    return np.frombuffer(text.encode(errors="surrogateescape"), dtype).copy()


def _listed(text: str, element: Type) -> Array:
    """Return an array of the numbers that a text lists, with commas between them."""
    dtype = dtype_of(element)
    words = text.removesuffix(",").split(",")
    if dtype.base.names is not None or any(isinstance(leaf, Pointer) for _, leaf in leaves(element)):
        raise _UnfitError(f"takes {_named(dtype.base)}, which numbers with commas between them cannot make")
    values = np.array([_fitted_number(_parsed(word.strip(), dtype.base), dtype.base) for word in words], dtype.base)
    per_element = element.size // dtype.base.itemsize
    if values.size % per_element:
        raise _UnfitError(f"has {per_element} numbers in each element, of which {values.size} are no multiple")
    return values.reshape(-1, *dtype.shape)


def _zeros(count: int, element: Type) -> Array:
    if count * element.size > MAXIMUM_BYTES:
        raise _UnfitError(
            f"cannot have {count} elements of {element.size} bytes: more than the {MAXIMUM_BYTES >> 30} GiB that an "
            "array may have here"
        )
    return np.zeros(count, dtype_of(element))


def _count(text: str, name: str = "N", *, least: int = 1) -> int:
    try:
        count = int(text)
    except ValueError:
        raise _UnfitError(f"needs a whole number for {name}, not {text!r}") from None
    if count < least:
        raise _UnfitError(f"needs {name} to be at least {least}, not {count}")
    return count


def _parts(array: Array) -> list[Array]:
    """Return the members of an array of structs, and of their structs, as views; of other arrays the array itself."""
    if array.dtype.names is None:
        return [array]
    return [part for name in array.dtype.names for part in _parts(array[name])]


def _random(generator: np.random.Generator, like: Array) -> Array:
    if like.dtype.kind == "f":
        return generator.random(like.shape).astype(like.dtype)
    below = 2 if like.dtype.kind == "b" else _RANDOM_INTEGERS
    return generator.integers(0, below, like.shape).astype(like.dtype)


def _from_file(name: str, element: Type) -> Array:
    try:
        values = read_npy(name)
    except InputError as error:
        raise _UnfitError(f"is to be read from a file: {error.message.removesuffix('.')}") from None
    if not values.size:
        raise _UnfitError(f"is to be read from {name!r}, which holds no elements")
    dtype = dtype_of(element)
    if dtype.base.names is not None:
        if values.dtype.itemsize not in (1, element.size) or values.nbytes % element.size:
            raise _UnfitError(
                f"needs elements of {element.size} bytes, and {name!r} holds {values.size} of {values.dtype}"
            )
        return np.ascontiguousarray(values).reshape(-1).view(np.uint8).view(dtype)
    flat = _fitted(np.ascontiguousarray(values).reshape(-1), dtype.base, f"{name!r} holds")
    per_element = element.size // dtype.base.itemsize
    if flat.size % per_element:
        raise _UnfitError(
            f"has {per_element} numbers in each element, of which the {flat.size} in {name!r} are no multiple"
        )
    return flat.reshape(-1, *dtype.shape)


def _fitted(values: Array, dtype: np.dtype[Any], who: str) -> Array:
    """Return values as another type, which must be able to hold them; fractions may be rounded, as a literal's are."""
    kinds = "iubf" if dtype.kind == "f" else "iub"
    if values.dtype.kind not in kinds:
        raise _UnfitError(f"takes {_named(dtype)}, and {who} {values.dtype}")
    finite = values[np.isfinite(values)]
    for extreme in (finite.min(), finite.max()) if finite.size else ():
        _fitted_number(extreme.item(), dtype, who)
    return values.astype(dtype)


def _by_value(argument: Any, type: Type) -> np.generic:
    """Return the value of a parameter that is no pointer."""
    if isinstance(type, Struct):
        return _struct(argument, type)
    assert isinstance(type, Scalar)
    if isinstance(argument, np.ndarray) and argument.ndim == 0:
        argument = argument[()]
    if isinstance(argument, str):
        argument = _parsed(argument, type.dtype)
    if isinstance(argument, np.ndarray):
        raise _UnfitError(f"is a number, not an array of {argument.dtype}")
    if isinstance(argument, np.generic):
        argument = argument.item()
    if not isinstance(argument, int | float):
        raise _UnfitError(f"is a number, not {argument!r}")
    return _fitted_number(argument, type.dtype)


def _struct(argument: Any, type: Struct) -> np.generic:
    """Return a struct by value, from its bytes, or from the numbers that it is made of."""
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
        raise _UnfitError(f"is a struct of {_number(len(parts), 'number')}, with commas between them, not {argument!r}")
    data = bytearray(type.size)
    for (offset, leaf), given in zip(parts, numbers, strict=True):
        if isinstance(leaf, Pointer):
            raise _UnfitError("holds a pointer, and cannot be given by value")
        dtype = np.dtype(np.float16) if type.name == "__half" else leaf.dtype
        value = _fitted_number(_parsed(given, dtype) if isinstance(given, str) else given, dtype)
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


def _parsed(text: str, dtype: np.dtype[Any]) -> int | float:
    """Return the number that a text stands for: 5, 0x1F, 1e6, -0.5, inf; true and false too."""
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
                raise _UnfitError(f"takes {_named(dtype)}, and it is given {text}, which is too large")
            return int(number) if dtype.kind != "f" and number.is_integer() else number
        return number
    if text.partition(":")[0] in ("zeros", "empty", "full", "arange", "random", "text", "file", "null"):
        raise _UnfitError(f"is a number, not a pointer, and {text!r} makes an array")
    raise _UnfitError(f"needs a number, and {text!r} is none")


def _fitted_number(value: float, dtype: np.dtype[Any], who: str = "") -> np.generic:
    """Return a number as a type that can hold it."""
    who = who or "it is given"
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            try:
                number = dtype.type(value)
            except OverflowError:
                number = dtype.type(np.inf)
        if np.isinf(number) and value not in (np.inf, -np.inf):
            raise _UnfitError(f"takes {_named(dtype)}, and {who} {value}, which is too large")
        return number  # type: ignore[no-any-return]
    if not isinstance(value, int):
        raise _UnfitError(f"takes {_named(dtype)}, and {who} {value!r}, a floating-point number")
    low, high = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if not low <= value <= high:
        raise _UnfitError(f"takes {_named(dtype)}, {low} to {high}, and {who} {value}")
    return dtype.type(value)  # type: ignore[no-any-return]


def _named(dtype: np.dtype[Any]) -> str:
    return f"structs of {dtype.itemsize} bytes" if dtype.names is not None else str(dtype)


def _number(count: int, what: str = "argument") -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
