"""The types of the IR: scalars are NumPy's, so that C's and the GPU's arithmetic is NumPy's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """An arithmetic type, named as NumPy names it; bool is one byte."""

    name: str

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
    """`length` elements in a row. An extern __shared__ array has length 0: its launch decides."""

    element: Type
    length: int

    @property
    def size(self) -> int:
        return self.element.size * self.length

    @property
    def innermost(self) -> Scalar | Pointer:
        """The type of the elements after every dimension is taken off."""
        element = self.element
        while isinstance(element, ArrayOf):
            element = element.element
        if isinstance(element, Void):
            raise TypeError("an array of void")
        return element

    @property
    def count(self) -> int:
        """How many innermost elements the array has, over every dimension."""
        return self.size // self.innermost.size

    def __str__(self) -> str:
        return f"{self.element} [{self.length}]"


@dataclass(frozen=True)
class Void:
    """No value."""

    size = 1

    def __str__(self) -> str:
        return "void"


Type = Scalar | Pointer | ArrayOf | Void

VOID = Void()
BOOL = Scalar("bool")
INT32 = Scalar("int32")
UINT32 = Scalar("uint32")
INT64 = Scalar("int64")
UINT64 = Scalar("uint64")
FLOAT32 = Scalar("float32")
