"""The typed IR that the front end makes and executors run.

Expressions know their type, and the operands of a binary node already agree in theirs, so an executor never infers one.
Assignments and atomics are expressions, because C lets them stand inside of conditions and `&&`, where they must stay
lazy; a statement that is an expression is an `Evaluate`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator.types import Pointer, Scalar, Type


@dataclass(frozen=True)
class Const:
    """A value known when the kernel is compiled."""

    type: Scalar
    value: np.generic


@dataclass(frozen=True)
class Null:
    """A null pointer."""

    type: Pointer


@dataclass(frozen=True)
class Local:
    """A variable of the running function, by its slot. For an array this is the pointer to its first element."""

    type: Type
    slot: int
    name: str


@dataclass(frozen=True)
class Global:
    """The pointer to a `__constant__` or `__device__` variable of the module."""

    type: Pointer
    name: str


@dataclass(frozen=True)
class Special:
    """threadIdx, blockIdx, blockDim or gridDim along an axis (0, 1, 2)."""

    type: Scalar
    name: str
    axis: int


@dataclass(frozen=True)
class Unary:
    """`-`, `~` or `!`."""

    type: Scalar
    op: str
    operand: Expression


@dataclass(frozen=True)
class Binary:
    """An arithmetic, bitwise or comparing operator, both operands of one type (a shift's may differ)."""

    type: Scalar
    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Logical:
    """`&&` or `||`: the right side runs only in the lanes that need it."""

    type: Scalar
    op: Literal["&&", "||"]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Select:
    """`condition ? chosen : other`: each side runs only in the lanes that need it."""

    type: Type
    condition: Expression
    chosen: Expression
    other: Expression


@dataclass(frozen=True)
class Sequence:
    """The comma operator."""

    type: Type
    first: Expression
    second: Expression


@dataclass(frozen=True)
class Cast:
    """A conversion between scalars, or between pointers (then only the element type changes)."""

    type: Type
    operand: Expression


@dataclass(frozen=True)
class Offset:
    """`pointer + index`, in elements."""

    type: Pointer
    pointer: Expression
    index: Expression


@dataclass(frozen=True)
class Distance:
    """`left - right` of two pointers, in elements."""

    type: Scalar
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Element:
    """A place in memory: `pointer[index]`."""

    type: Scalar | Pointer
    pointer: Expression
    index: Expression | None
    position: SourcePosition


Place = Local | Element


@dataclass(frozen=True)
class Load:
    """The value at a place in memory."""

    type: Type
    place: Element


@dataclass(frozen=True)
class Assign:
    """`place = value`; its own value is what was stored."""

    type: Type
    place: Place
    value: Expression


@dataclass(frozen=True)
class Update:
    """`place op= value`, computed in `compute`; its own value is the new one, or the old (`x++`)."""

    type: Type
    place: Place
    op: str
    value: Expression
    compute: Scalar | Pointer
    gives_old: bool = False


@dataclass(frozen=True)
class Intrinsic:
    """A function of CUDA's that the executor knows, such as `sqrtf`: its arguments are values."""

    type: Scalar
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Atomic:
    """A read-modify-write that nothing comes between; its value is the old one, needed only where `used`."""

    type: Scalar
    op: str
    place: Element
    arguments: tuple[Expression, ...]
    used: bool = True


@dataclass(frozen=True)
class Call:
    """A call of a `__device__` function of the module."""

    type: Type
    function: Function
    arguments: tuple[Expression, ...]


Expression = (
    Const
    | Null
    | Local
    | Global
    | Special
    | Unary
    | Binary
    | Logical
    | Select
    | Sequence
    | Cast
    | Offset
    | Distance
    | Load
    | Assign
    | Update
    | Intrinsic
    | Atomic
    | Call
)


@dataclass(frozen=True)
class Evaluate:
    """An expression as a statement."""

    expression: Expression
    position: SourcePosition


@dataclass(frozen=True)
class Declare:
    """A variable comes to life, with a value or without."""

    slot: int
    type: Scalar | Pointer
    value: Expression | None
    position: SourcePosition


@dataclass(frozen=True)
class DeclareArray:
    """An array of each thread's own comes to life; `values` fill its beginning, zeros the rest where there are any."""

    slot: int
    element: Scalar
    count: int
    values: tuple[Expression, ...] | None
    name: str
    position: SourcePosition


@dataclass(frozen=True)
class Block:
    """Statements in order."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class If:
    """Lanes where `condition` holds run `then`, the rest `orelse`."""

    condition: Expression
    then: Statement
    orelse: Statement | None
    position: SourcePosition


@dataclass(frozen=True)
class Loop:
    """`for`, `while` and `do`: lanes stay as long as `condition` holds; a `do` tests after the first round."""

    condition: Expression | None
    step: Expression | None
    body: Statement
    tests_first: bool
    position: SourcePosition


@dataclass(frozen=True)
class Jump:
    """`break` or `continue` of the innermost loop."""

    kind: Literal["break", "continue"]
    position: SourcePosition


@dataclass(frozen=True)
class Return:
    """The end of a function for the lanes that get here."""

    value: Expression | None
    position: SourcePosition


@dataclass(frozen=True)
class Barrier:
    """`__syncthreads()`."""

    position: SourcePosition


Statement = Evaluate | Declare | DeclareArray | Block | If | Loop | Jump | Return | Barrier


@dataclass(frozen=True, eq=False)
class SharedArray:
    """A `__shared__` variable: `count` elements for each block, or, where it is `dynamic`, as many as the launch gives.

    Equal only to itself: two functions may each have one of the same name.
    """

    slot: int
    name: str
    element: Scalar
    count: int
    dynamic: bool


@dataclass
class Function:
    """A kernel or a `__device__` function. `body` is filled in after the object exists, so that calls can name it."""

    name: str
    type: Type
    parameters: tuple[tuple[str, Type], ...] = ()
    slots: int = 0
    shared: list[SharedArray] = field(default_factory=list)
    body: Block = field(default_factory=lambda: Block(()))


@dataclass(frozen=True)
class GlobalVariable:
    """A `__constant__` or `__device__` variable: `count` elements, and the values it starts with."""

    name: str
    space: Literal["constant", "global"]
    element: Scalar
    count: int
    initial: tuple[Any, ...] = ()
