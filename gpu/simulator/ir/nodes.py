"""The typed IR that the front end produces and the executors run.

Expressions carry their type, and both operands of a binary node have the same type, so executors infer no types.
Assignments and atomics are expressions, because C allows them inside conditions and `&&`, where they must be evaluated
lazily; an expression used as a statement is an `Evaluate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.simulator.types import VOID, Pointer, Scalar, Type

Scope = Literal["block", "cluster", "device", "system"]
"""The threads to which a fence or a strong access applies: those of the same block, cluster, device, or all."""

MemoryOrder = Literal["weak", "volatile", "relaxed", "acquire", "release", "acq_rel"]
"""The order of an access, as PTX names it. A weak access is an ordinary one, all others are strong."""

MEMORY_ORDERS: tuple[MemoryOrder, ...] = ("relaxed", "acquire", "acquire", "release", "acq_rel", "acq_rel")
"""The orders by the values of `cuda::memory_order`: relaxed, consume, acquire, release, acq_rel, seq_cst."""

UNROLL_ALL = 0
"""The value of `Loop.unroll` for `#pragma unroll` without a number, or with one that is not a literal."""


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
    """A variable of the running function, identified by its slot; for an array, the pointer to its first element."""

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
    """An arithmetic, bitwise or comparison operator; both operands have one type (except a shift's).

    Pointers are compared as numbers, which a `Cast` produces. An exact product is not rounded before the sum or
    difference of which it is an operand. An integer division, remainder or shift of the user's code has a position if
    its result may be undefined in C++.
    """

    type: Scalar
    op: str
    left: Expression
    right: Expression
    is_exact: bool = False
    position: SourcePosition | None = field(default=None, compare=False)


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
    """A conversion between scalars, between pointers (the address is unchanged), or between a pointer and 64 bits."""

    type: Type
    operand: Expression


@dataclass(frozen=True)
class SharedAddress:
    """A pointer into shared memory as the 32-bit address that PTX uses; with a pointer type, the conversion back."""

    type: Scalar | Pointer
    operand: Expression
    position: SourcePosition


@dataclass(frozen=True)
class Offset:
    """`pointer + index`, in elements.

    If the result is the address of a row of an array, `rows` are the lengths of the array's dimensions, as in Element;
    the last is the length of the row.
    """

    type: Pointer
    pointer: Expression
    index: Expression
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Member:
    """The address of a member: `pointer` plus an offset in bytes."""

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
    """A struct's value from its parts, each a scalar, a pointer or a struct, in the order of the struct's leaves."""

    type: Type
    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Extract:
    """The part of a struct's value that starts at the leaf with a number."""

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
    """The index of the texel at coordinates x, or x and y; `size` is a texel's size in bytes.

    Nothing more is needed for the nearest texel; one of several filtered texels is selected, for each axis, as the
    first (0) or the second (1). For a surface, where x counts bytes, `boundary` is the behavior beyond an edge: 0
    ignores the access, 1 clamps to the last element, 2 ends the launch.
    """

    type: Scalar
    pointer: Expression
    coordinates: tuple[Expression, ...]
    size: int
    position: SourcePosition
    neighbor_offsets: tuple[int, ...] = ()
    boundary: int | None = None


@dataclass(frozen=True)
class TexelWeight:
    """The weight of the second of two texels along an axis; without a coordinate, whether the texture is filtered."""

    type: Scalar
    pointer: Expression
    axis: int
    coordinate: Expression | None
    position: SourcePosition


@dataclass(frozen=True)
class Element:
    """A place in memory: `pointer[index]`.

    An index into several dimensions is one number; `rows` are the lengths of all dimensions but the first, as declared.
    Flags mark a place that the source names by dereferencing a pointer, as in `*p`, the accumulator of an asynchronous
    matrix product, and a place that is read through the read-only cache. `order` and `scope` are those of a PTX
    instruction or of `cuda::atomic`, which have a `volatile` place unless they are weak; other places have none. An
    order that is an expression is the number of one in `MEMORY_ORDERS`.
    """

    type: Type
    pointer: Expression
    index: Expression | None
    position: SourcePosition
    volatile: bool = False
    rows: tuple[int, ...] = ()
    is_dereferenced: bool = False
    is_accumulator: bool = False
    order: MemoryOrder | Expression | None = None
    scope: Scope = "system"
    is_read_only: bool = False


Place = Local | Element


@dataclass(frozen=True)
class Load:
    """The value at a place in memory; a flag marks an operand that an asynchronous product reads until a wait."""

    type: Type
    place: Element
    is_async: bool = False


@dataclass(frozen=True)
class Assign:
    """`place = value`; evaluates to the stored value."""

    type: Type
    place: Place
    value: Expression


@dataclass(frozen=True)
class Update:
    """`place op= value`, computed in a given type; evaluates to the new value, or to the old one (`x++`).

    `position` is as for `Binary`.
    """

    type: Type
    place: Place
    op: str
    value: Expression
    compute_type: Scalar | Pointer
    returns_old: bool = False
    position: SourcePosition | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Intrinsic:
    """A built-in function of CUDA that the executors implement, such as `sqrtf`; its arguments are values."""

    type: Scalar
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Atomic:
    """An atomic read-modify-write; evaluates to the old value, unless it is not used.

    An order that is an expression is the number of one in `MEMORY_ORDERS`.
    """

    type: Scalar
    op: str
    place: Element
    arguments: tuple[Expression, ...]
    used: bool = True
    scope: Scope = "device"
    order: MemoryOrder | Expression = "relaxed"


@dataclass(frozen=True)
class Warp:
    """An exchange between the lanes of a warp, such as "shfl_down" or "ballot", or a block's vote at a barrier."""

    type: Scalar
    op: str
    arguments: tuple[Expression, ...]
    position: SourcePosition


@dataclass(frozen=True)
class Fence:
    """A memory fence: observers are notified, and execution continues.

    For `__syncwarp`, `lanes` is the mask of the lanes it names; None for all. The name of a memory fence may end with
    its order, as in "__threadfence.acquire".
    """

    type: Type
    name: str
    position: SourcePosition
    lanes: Expression | None = None


AsyncKind = Literal["copy", "bulk", "product"]
"""Kinds of asynchronous operations: copies, bulk copies, and matrix products of warpgroups."""


@dataclass(frozen=True)
class AsyncCopy:
    """An asynchronous copy; if fewer bytes are read than its size, the others become zeros."""

    type: Type
    destination: Expression
    source: Expression
    bytes: Expression
    read_bytes: Expression | None
    position: SourcePosition


@dataclass(frozen=True)
class AsyncCommit:
    """The end of a group of asynchronous operations of a thread; each kind has separate groups."""

    type: Type
    kind: AsyncKind = "copy"


@dataclass(frozen=True)
class AsyncWait:
    """Wait until at most a number of the thread's most recent groups are pending; None waits for all."""

    type: Type
    pending_groups: Expression | None
    kind: AsyncKind = "copy"


@dataclass(frozen=True)
class BulkCopy:
    """An asynchronous copy of a multiple of 16 bytes, completed by a `barrier` in shared memory or by a group."""

    type: Type
    destination: Expression
    source: Expression
    bytes: Expression
    barrier: Expression | None
    position: SourcePosition


@dataclass(frozen=True)
class TensorCopy:
    """An asynchronous copy of a box of a matrix to shared memory, completed by a `barrier`.

    The numbers, of type int64, are: the matrix's rows, bytes per row, and bytes from one row to the next; the byte of a
    row and the row at which the box begins; the rows of the box, with 128 bytes each; and the line of 128 bytes at
    which it is written. Bytes outside of the matrix are zeros. In line i, the part of 16 bytes with index j is written
    at index j ^ i % 8.
    """

    type: Type
    destination: Expression
    matrix: Expression
    numbers: tuple[Expression, ...]
    barrier: Expression
    position: SourcePosition


@dataclass(frozen=True)
class BarrierPhase:
    """A thread's operation on a barrier object in shared memory, at a pointer.

    The argument of "init", "arrive", "drop", "expect" and "complete" is a number of arrivals or bytes, that of "test" a
    parity. For "bind", the arrival when the thread's copies are complete, it is whether that arrival adds to the
    expected number. A relaxed operation orders no accesses without a fence.
    """

    type: Type
    op: str
    pointer: Expression
    argument: Expression
    position: SourcePosition
    is_relaxed: bool = False


@dataclass(frozen=True)
class HeapChange:
    """A change of the heap, for observers: `size` bytes were allocated at an address; without a size they are freed."""

    type: Type
    pointer: Expression
    size: Expression | None
    position: SourcePosition


@dataclass(frozen=True)
class Print:
    """`printf`: one text per lane; a string argument is printed as it is."""

    type: Scalar
    format: str
    arguments: tuple[Expression | str, ...]


@dataclass(frozen=True)
class Assertion:
    """`assert`: the launch fails if the condition is false in any lane."""

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
    """A call through a function pointer, which is the number of one of `functions`: all whose address is taken."""

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
class NamedBarrier:
    """One of the 16 barriers of a block: a thread arrives there, and waits unless `part` is "arrive".

    `count` is the number of threads that complete the barrier, None for all of the block. All threads of a warp execute
    an `aligned` one together.
    """

    type: Type
    part: Literal["sync", "arrive"]
    number: Expression
    count: Expression | None
    aligned: bool
    position: SourcePosition


@dataclass(frozen=True)
class ClusterBarrier:
    """A barrier of all threads of a cluster: each thread arrives, and later waits for the others.

    A relaxed arrival orders no accesses.
    """

    type: Type
    part: Literal["arrive", "wait"]
    position: SourcePosition
    is_relaxed: bool = False


@dataclass(frozen=True)
class ClusterAddress:
    """A pointer into shared memory, mapped to the shared memory of the cluster's block with the given rank."""

    type: Pointer
    pointer: Expression
    rank: Expression
    position: SourcePosition


@dataclass(frozen=True)
class Clock:
    """A number that never decreases while a block runs; a handle only has to differ each time."""

    type: Scalar
    is_handle: bool = False


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
    """`cudaDeviceSynchronize()`: run all kernels that the blocks have launched so far before continuing."""

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
    | TensorCopy
    | BarrierPhase
    | HeapChange
    | Print
    | Assertion
    | Call
    | IndirectCall
    | GridBarrier
    | NamedBarrier
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

    `text`, here and in other statements, is the source text of the expression; for an assignment, of its value.
    """

    expression: Expression
    position: SourcePosition
    text: str = ""


@dataclass(frozen=True)
class Declare:
    """Declaration of a variable, with or without a value. The `name` of a reference starts with "&"."""

    slot: int
    type: Type
    value: Expression | None
    position: SourcePosition
    name: str = ""
    text: str = ""


@dataclass(frozen=True)
class DeclareMemory:
    """Declaration of local memory: an array, a struct, or a variable whose address is taken.

    `values` are stored at their offsets in bytes; all other bytes may become zero. The slot holds the address. Bytes of
    punned memory, such as a union, may be read in another size than they were written. `type` is the declared type.
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
    """Statements in order; if they form a scope, the variables they declare end when lanes leave it."""

    statements: tuple[Statement, ...]
    is_scope: bool = False


@dataclass(frozen=True)
class If:
    """Lanes with a true `condition` run `then`, the others `orelse`."""

    condition: Expression
    then: Statement
    orelse: Statement | None
    position: SourcePosition
    text: str = ""


@dataclass(frozen=True)
class Loop:
    """`for`, `while` and `do`: lanes stay while `condition` is true; a `do` tests it after the first iteration.

    `unroll` is the number in `#pragma unroll 4`: 1 forbids unrolling, `UNROLL_ALL` stands for a pragma without number,
    None for no pragma. Only the timing model uses it.
    """

    condition: Expression | None
    step: Expression | None
    body: Statement
    tests_first: bool
    position: SourcePosition
    text: str = ""
    unroll: int | None = None


@dataclass(frozen=True)
class Section:
    """The statements after one or more labels of a switch; `values` are its cases."""

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
    """A `__shared__` variable of `size` bytes per block, or, if it is dynamic, of the size that the launch specifies.

    `shape` is that of an array of known size, else empty. Equal only to itself: two functions may each have a variable
    with the same name. If several functions use one variable, such as a kernel and its lambdas, all but the first name
    that one as `original`.
    """

    slot: int
    name: str
    size: int
    is_dynamic: bool
    shape: tuple[int, ...] = ()
    original: SharedVariable | None = None

    @property
    def key(self) -> object:
        """What identifies its memory; all extern arrays of a kernel share one memory."""
        return "extern" if self.is_dynamic else self.original or self


@dataclass(eq=False)
class Function:
    """A kernel or a `__device__` function. `body` is filled in after the object exists, so that calls can name it.

    `restricted` are the indices of its `__restrict__` parameters, which only the timing model uses.
    """

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
    restricted: tuple[int, ...] = ()
    body: Block = field(default_factory=lambda: Block(()))


VariableSpace = Literal["constant", "global", "texture"]


@dataclass(frozen=True)
class GlobalVariable:
    """A `__constant__` or `__device__` variable, or a texture reference.

    `initial` are the constants of its initializer, by offset in bytes.
    """

    name: str
    space: VariableSpace
    type: Type
    initial: tuple[tuple[int, Const], ...] = ()
