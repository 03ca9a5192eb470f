"""The typed IR that the front end makes and executors run.

Expressions know their type, and the operands of a binary node already agree in theirs, so an executor never infers one.
Assignments and atomics are expressions, because C lets them stand inside of conditions and `&&`, where they must stay
lazy; a statement that is an expression is an `Evaluate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator.types import VOID, Pointer, Scalar, Type


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
    """threadIdx, blockIdx, blockDim, gridDim or clusterDim along an axis (0, 1, 2)."""

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
    """An arithmetic, bitwise or comparing operator, both operands of one type (a shift's may differ).

    Pointers are compared as the numbers that a `Cast` makes of them.
    """

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
    """A conversion between scalars, between pointers (the address stays), or between a pointer and a 64-bit number."""

    type: Type
    operand: Expression


@dataclass(frozen=True)
class SharedAddress:
    """A pointer into shared memory as the number, below 2^32, that PTX has for it; or, of pointer type, back again."""

    type: Scalar | Pointer
    operand: Expression
    position: SourcePosition


@dataclass(frozen=True)
class Offset:
    """`pointer + index`, in elements; `rows` are lengths where that is the address of a row of an array, as of Element.

    The last of them is the elements of the row itself.
    """

    type: Pointer
    pointer: Expression
    index: Expression
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Member:
    """The address of a member: `pointer` moved by so many bytes."""

    type: Pointer
    pointer: Expression
    offset: int


@dataclass(frozen=True)
class Temporary:
    """The address of new memory of the running function that holds a value, so that a reference can bind to it."""

    type: Pointer
    value: Expression | None


@dataclass(frozen=True)
class Construct:
    """A struct's value from those of its parts, each a scalar, a pointer or a struct, in the order of its leaves."""

    type: Type
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Extract:
    """The part of a struct's value that starts at a leaf."""

    type: Type
    operand: Expression
    first: int


@dataclass(frozen=True)
class Distance:
    """`left - right` of two pointers, in elements."""

    type: Scalar
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Texel:
    """Which element of a texture lies at coordinates: x, or x and y; `size` is that of an element in bytes.

    `beside` is empty for the nearest one; of those that are filtered it says of each axis whether it is the first or
    the second one. Of a surface, whose x counts bytes, `boundary` says what is done beyond an edge: 0 nothing, 1 the
    last element is taken, 2 the launch ends.
    """

    type: Scalar
    pointer: Expression
    places: tuple[Expression, ...]
    size: int
    position: SourcePosition
    beside: tuple[int, ...] = ()
    boundary: int | None = None


@dataclass(frozen=True)
class TexelWeight:
    """How much of the second of two elements a fetch takes along an axis; without a place whether it is filtered."""

    type: Scalar
    pointer: Expression
    axis: int
    place: Expression | None
    position: SourcePosition


@dataclass(frozen=True)
class Element:
    """A place in memory: `pointer[index]`.

    An index into several dimensions is one number; `rows` are the lengths of all but the first, as the text counts
    them. `is_led_to` is whether the text has a pointer that leads here, as in `*p`, rather than the place's own name.
    A `sum` is what a product that a thread starts is added to.
    """

    type: Type
    pointer: Expression
    index: Expression | None
    position: SourcePosition
    volatile: bool = False
    rows: tuple[int, ...] = ()
    is_led_to: bool = False
    sum: bool = False


Place = Local | Element


@dataclass(frozen=True)
class Load:
    """The value at a place in memory; for a product that a thread starts, which `reads_on` until it is waited for."""

    type: Type
    place: Element
    reads_on: bool = False


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
class Warp:
    """An exchange between the lanes of a warp, such as "shfl_down" or "ballot", or the vote of a block at a barrier."""

    type: Scalar
    op: str
    arguments: tuple[Expression, ...]
    position: SourcePosition


@dataclass(frozen=True)
class Fence:
    """What orders memory between threads: the executor goes on, observers are told.

    Of `__syncwarp` the lanes that it names, a mask; None for all.
    """

    type: Type
    name: str
    position: SourcePosition
    lanes: Expression | None = None


AsyncKind = Literal["copy", "bulk", "product"]
"""What goes on while threads do: copies, those in bulk, and products of tiles by warpgroups."""


@dataclass(frozen=True)
class AsyncCopy:
    """A copy that a thread starts; of its `bytes` only the first `given` are read, and zeros stand for the others."""

    type: Type
    to: Expression
    source: Expression
    bytes: Expression
    given: Expression | None
    position: SourcePosition


@dataclass(frozen=True)
class AsyncCommit:
    """The end of a group of what the thread has started; of each kind there are groups of their own."""

    type: Type
    kind: AsyncKind = "copy"


@dataclass(frozen=True)
class AsyncWait:
    """What the thread started is done, but for so many groups that ended last; None for all of it."""

    type: Type
    left: Expression | None
    kind: AsyncKind = "copy"


@dataclass(frozen=True)
class BulkCopy:
    """A copy of any number of times 16 bytes that a thread starts, and that a `barrier` waits for, or a group."""

    type: Type
    to: Expression
    source: Expression
    bytes: Expression
    barrier: Expression | None
    position: SourcePosition


@dataclass(frozen=True)
class BarrierPhase:
    """What a thread does with a barrier that is an object in shared memory, at a pointer.

    "init", "arrive", "drop", "expect" and "complete" take how many arrivals or bytes, "test" takes a parity, and "bind"
    says whether an arrival when the thread's copies are there is one that was not expected.
    """

    type: Type
    op: str
    pointer: Expression
    argument: Expression
    position: SourcePosition


@dataclass(frozen=True)
class HeapChange:
    """What observers are told of the heap: `size` bytes have been allocated at an address, or, without, it is freed."""

    type: Type
    pointer: Expression
    size: Expression | None
    position: SourcePosition


@dataclass(frozen=True)
class Print:
    """`printf`: a text for each lane. An argument may be a string that is written out."""

    type: Scalar
    format: str
    arguments: tuple[Expression | str, ...]


@dataclass(frozen=True)
class Assertion:
    """`assert`: the launch fails where a lane finds the condition false."""

    type: Type
    condition: Expression
    text: str
    position: SourcePosition


@dataclass(frozen=True)
class Call:
    """A call of a `__device__` function of the module."""

    type: Type
    function: Function
    arguments: tuple[Expression, ...]
    position: SourcePosition


@dataclass(frozen=True)
class IndirectCall:
    """A call through a pointer, which is the number of one of `functions`: of all whose address is taken."""

    type: Type
    function: Expression
    functions: Mapping[int, Function]
    arguments: tuple[Expression, ...]
    position: SourcePosition


@dataclass(frozen=True)
class GridBarrier:
    """A cooperative group's barrier of all threads of the grid."""

    type: Type
    position: SourcePosition


@dataclass(frozen=True)
class ClusterBarrier:
    """A barrier of all threads of a cluster of blocks: each of them arrives at it, and then waits for the others."""

    type: Type
    part: Literal["arrive", "wait"]
    position: SourcePosition


@dataclass(frozen=True)
class ClusterAddress:
    """The pointer to where what a pointer into shared memory leads to is in the cluster's block of a rank."""

    type: Pointer
    pointer: Expression
    rank: Expression
    position: SourcePosition


@dataclass(frozen=True)
class Clock:
    """A number that only grows while a block runs; of a `handle` it matters only that it is another one each time."""

    type: Scalar
    handle: bool = False


@dataclass(frozen=True)
class LaunchCall:
    """A launch of another kernel by each lane: `grid` and `block` are values of dim3, `stream` is a pointer."""

    type: Type
    function: Function
    grid: Expression
    block: Expression
    shared_bytes: Expression
    stream: Expression
    arguments: tuple[Expression, ...]
    position: SourcePosition


@dataclass(frozen=True)
class WaitForChildren:
    """`cudaDeviceSynchronize()`: the kernels that the blocks have launched so far run before anything else does."""

    type: Type
    position: SourcePosition


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
    | SharedAddress
    | Offset
    | Member
    | Temporary
    | Construct
    | Extract
    | Distance
    | Load
    | Assign
    | Update
    | Intrinsic
    | Atomic
    | Warp
    | Fence
    | AsyncCopy
    | AsyncCommit
    | AsyncWait
    | BulkCopy
    | BarrierPhase
    | HeapChange
    | Print
    | Assertion
    | Call
    | IndirectCall
    | GridBarrier
    | ClusterBarrier
    | ClusterAddress
    | Clock
    | Texel
    | TexelWeight
    | LaunchCall
    | WaitForChildren
)


@dataclass(frozen=True)
class Evaluate:
    """An expression as a statement.

    `text`, here and in other statements, is what the source has for the expression; of an assignment, for its value.
    """

    expression: Expression
    position: SourcePosition
    text: str = ""


@dataclass(frozen=True)
class Declare:
    """A variable comes to life, with a value or without. Before a reference's `name` there is an "&"."""

    slot: int
    type: Type
    value: Expression | None
    position: SourcePosition
    name: str = ""
    text: str = ""


@dataclass(frozen=True)
class DeclareMemory:
    """Memory of each thread's own comes to life: an array, a struct, or a variable whose address is taken.

    `values` are stored at their offsets in bytes, and zeros elsewhere where `zeroed`. The slot holds the address. Where
    it is `punned`, as a union is, its bytes may be read in another size than written. `type` is what the text declares.
    """

    slot: int
    size: int
    values: tuple[tuple[int, Expression], ...]
    zeroed: bool
    name: str
    position: SourcePosition
    punned: bool = False
    type: Type = VOID


@dataclass(frozen=True)
class Block:
    """Statements in order; where they are a `scope`, what they declare is gone when lanes leave it."""

    statements: tuple[Statement, ...]
    scope: bool = False


@dataclass(frozen=True)
class If:
    """Lanes where `condition` holds run `then`, the rest `orelse`."""

    condition: Expression
    then: Statement
    orelse: Statement | None
    position: SourcePosition
    text: str = ""


@dataclass(frozen=True)
class Loop:
    """`for`, `while` and `do`: lanes stay as long as `condition` holds; a `do` tests after the first round."""

    condition: Expression | None
    step: Expression | None
    body: Statement
    tests_first: bool
    position: SourcePosition
    text: str = ""


@dataclass(frozen=True)
class Section:
    """The statements behind one or more labels of a switch; `values` are its cases."""

    values: tuple[int, ...]
    is_default: bool
    body: Block


@dataclass(frozen=True)
class Switch:
    """Lanes enter at the section of their case and fall through to the next until they break."""

    value: Expression
    sections: tuple[Section, ...]
    position: SourcePosition
    text: str = ""


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


Statement = Evaluate | Declare | DeclareMemory | Block | If | Loop | Switch | Jump | Return | Barrier


@dataclass(frozen=True, eq=False)
class SharedVariable:
    """A `__shared__` variable: `size` bytes for each block, or, where it is `dynamic`, as many as the launch gives.

    `shape` is that of an array of known size, else empty. Equal only to itself: two functions may each have one of the
    same name.
    """

    slot: int
    name: str
    size: int
    dynamic: bool
    shape: tuple[int, ...] = ()


@dataclass
class Function:
    """A kernel or a `__device__` function. `body` is filled in after the object exists, so that calls can name it."""

    name: str
    type: Type
    parameters: tuple[tuple[str, Type], ...] = ()
    slots: int = 0
    shared: list[SharedVariable] = field(default_factory=list)
    calls: list[Function] = field(default_factory=list)
    syncs_grid: bool = False
    cluster: tuple[int, int, int] | None = None
    syncs_cluster: bool = False
    has_phases: bool = False
    body: Block = field(default_factory=lambda: Block(()))


VariableSpace = Literal["constant", "global", "texture"]


@dataclass(frozen=True)
class GlobalVariable:
    """A `__constant__` or `__device__` variable, or a texture reference.

    It has a type, and the constants it starts with, by offset in bytes.
    """

    name: str
    space: VariableSpace
    type: Type
    initial: tuple[tuple[int, Const], ...] = ()
