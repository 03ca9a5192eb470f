"""The types of the IR: scalars are NumPy's dtypes, so that NumPy's arithmetic matches C's and the GPU's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """An arithmetic type, by its NumPy name; bool is one byte."""

    name: str

    def __reduce__(self) -> tuple[type[Scalar], tuple[str]]:
        # Equal types pickle to the same bytes, whatever properties are cached.
        return Scalar, (self.name,)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.name)

    @property
    def size(self) -> int:
        """Bytes of one value."""
        return self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_signed(self) -> bool:
        return self.dtype.kind == "i"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pointer:
    """The address of elements of one type."""

    element: Type
    size = 8

    def __str__(self) -> str:
        return f"{self.element} *"


@dataclass(frozen=True)
class ArrayOf:
    """`length` consecutive elements. An extern __shared__ array has length 0: the launch determines it."""

    element: Type
    length: int

    @property
    def size(self) -> int:
        return self.element.size * self.length

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of every dimension."""
        return (self.length, *(self.element.shape if isinstance(self.element, ArrayOf) else ()))

    @property
    def innermost(self) -> Type:
        """The type of the elements after all dimensions are removed."""
        return self.element.innermost if isinstance(self.element, ArrayOf) else self.element

    @property
    def count(self) -> int:
        """The number of innermost elements, over all dimensions."""
        return self.size // self.innermost.size

    def __str__(self) -> str:
        return f"{self.element} [{self.length}]"


@dataclass(frozen=True)
class BitField:
    """A bit field: `width` bits from bit `shift` of the storage unit at `offset` bytes of a struct.

    A read of the field reads the whole unit, and a write reads and writes it. `type` is the type of the field's value,
    `unit` the unsigned type of the unit.
    """

    name: str
    type: Scalar
    unit: Scalar
    offset: int
    shift: int
    width: int


@dataclass(frozen=True)
class Field:
    """A member of a struct, `offset` bytes from its beginning.

    A reference is stored as a pointer; `refers_to` is the type that it refers to. A storage unit of bit fields has them
    as its `parts`, and their names with commas as its name.
    """

    name: str
    type: Type
    offset: int
    refers_to: Type | None = None
    parts: tuple[BitField, ...] = ()

    @property
    def is_reference(self) -> bool:
        return self.refers_to is not None

    @property
    def is_anonymous(self) -> bool:
        """Whether this is a base class, or a struct or union whose members belong to the enclosing one."""
        return not self.name or "(anonymous " in self.name


@dataclass(eq=False)
class Struct:
    """A struct, class or union; base classes are fields without a name.

    Equal only to itself. `fields` and `size` are filled in after the object exists, so that a struct may contain
    pointers to its own type.
    """

    name: str
    fields: tuple[Field, ...] = ()
    size: int = 0
    alignment: int = 1
    is_union: bool = False

    def find_bit_field(self, name: str) -> BitField | None:
        """Return the bit field of that name, also of a base class, with its offset from the beginning; else None."""
        for member in self.fields:
            for part in member.parts:
                if part.name == name:
                    return part
            if member.is_anonymous and isinstance(member.type, Struct):
                inherited = member.type.find_bit_field(name)
                if inherited is not None:
                    return replace(inherited, offset=member.offset + inherited.offset)
        return None

    def field(self, name: str) -> Field:
        """Return the member of that name, also of a base class, with its offset from the beginning of this struct."""
        for member in self.fields:
            if member.name == name:
                return member
            if member.is_anonymous and isinstance(member.type, Struct):
                try:
                    inherited = member.type.field(name)
                except KeyError:
                    continue
                return Field(name, inherited.type, member.offset + inherited.offset, inherited.refers_to)
        raise KeyError(name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Void:
    """No value."""

    size = 1

    def __str__(self) -> str:
        return "void"


Type = Scalar | Pointer | ArrayOf | Struct | Void


def vector_size(type: Type) -> int:
    """Return the size in bytes of a type that one instruction loads or stores, such as float4; 0 for any other."""
    is_vector = isinstance(type, Struct) and type.size == type.alignment and type.size in (2, 4, 8, 16)
    return type.size if is_vector else 0


@lru_cache(maxsize=4096)
def leaves(type: Type) -> tuple[tuple[int, Scalar | Pointer], ...]:
    """Return the scalars and pointers that a value of a type consists of, each with its offset in bytes."""
    match type:
        case Scalar() | Pointer():
            return ((0, type),)
        case ArrayOf(element, length):
            inner = leaves(element)
            return tuple((number * element.size + offset, leaf) for number in range(length) for offset, leaf in inner)
        case Struct(is_union=True):
            # Words, whatever the members are, so that a copy of a union copies all of its bytes.
            word = Scalar(f"uint{8 * min(type.alignment, 8)}")
            return tuple((offset, word) for offset in range(0, type.size, word.size))
        case Struct():
            return tuple(
                (member.offset + offset, leaf) for member in type.fields for offset, leaf in leaves(member.type)
            )
        case Void():
            return ()


def decay(type: Type) -> Type:
    """Return an array's innermost element type, over all dimensions; other types are returned unchanged."""
    return type.innermost if isinstance(type, ArrayOf) else type


def is_integer(type: object) -> bool:
    """Return whether a type is an integer, other than bool."""
    return isinstance(type, Scalar) and not type.is_float and type != BOOL


def has_union(type: Type) -> bool:
    """Return whether a type is or contains a union, so that bytes may be read in another size than written."""
    if isinstance(type, ArrayOf):
        return has_union(type.innermost)
    return isinstance(type, Struct) and (type.is_union or any(has_union(member.type) for member in type.fields))


VOID = Void()
BOOL = Scalar("bool")
INT32, INT64 = Scalar("int32"), Scalar("int64")
UINT8, UINT16, UINT32, UINT64 = (Scalar(f"uint{bits}") for bits in (8, 16, 32, 64))
FLOAT32 = Scalar("float32")

#: A pointer to a function, stored as the function's number; 0 is null.
FUNCTION_POINTER = Scalar("uint64")
