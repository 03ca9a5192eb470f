"""The text of one LLVM function under construction: values, labels, loops. It is independent of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpu.simulator.compiled.llvm.outlining import MIN_LINES, OutlinedLines, is_self_contained
from gpu.simulator.types import Pointer, Scalar

_FLOATS = {"float32": "float", "float64": "double"}


class UnsupportedKernel(Exception):  # noqa: N818  # not an error: the lockstep executor takes over
    """Raised for a construct that the compiled executor does not support; the lockstep executor takes over."""


def value_type(type: Scalar | Pointer) -> str:
    """Return LLVM's type of a value; a bool is one bit."""
    return "i1" if type == Scalar("bool") else memory_type(type)


def memory_type(type: Scalar | Pointer) -> str:
    """Return LLVM's type of a value in memory; a bool is one byte."""
    if isinstance(type, Pointer):
        return "ptr"
    if type.is_float:
        if type.name not in _FLOATS:
            raise UnsupportedKernel(f"{type} arithmetic")
        return _FLOATS[type.name]
    return f"i{8 * type.size}"


class Assembly:
    """A function's text. Variables are allocas in the entry block, which LLVM promotes to registers.

    Attributes
    ----------
    instruction_suffix : str
        Suffix of each instruction, such as debug metadata with its source line; usually "".
    exit_instruction : str
        The instruction that ends the function.
    persistent_variables : set of str
        The addresses of variables that keep their values between executions of the code that declares them.
    outlines : bool
        Whether long runs of lines may be outlined to separate functions.
    instructions : int
        The number of instructions so far.
    """

    def __init__(self) -> None:
        self.entry: list[str] = []
        self.lines: list[str | OutlinedLines] = []
        self.persistent_variables: set[str] = set()
        self.outlines = False
        self.instructions = 0
        self.metadata: list[str] = []
        self.declarations: set[str] = set()
        self.is_terminated = False
        self.instruction_suffix = ""
        self.exit_instruction = "ret void"
        self._count = 0
        self._no_unroll_metadata = ""

    def new_name(self, hint: str) -> str:
        """Return a new name."""
        self._count += 1
        return f"{hint}.{self._count}"

    def emit(self, line: str) -> None:
        """Add an instruction. Instructions after a jump form an unreachable block, which LLVM removes."""
        if self.is_terminated:
            self.lines.append(f"{self.new_name('dead')}:")
            self.is_terminated = False
        self.instructions += 1
        self.lines.append(f"  {line}{self.instruction_suffix}")

    def value(self, instruction: str, hint: str = "v") -> str:
        """Add an instruction and return the name of its value."""
        name = f"%{self.new_name(hint)}"
        self.emit(f"{name} = {instruction}")
        return name

    def outline(self, start: int) -> int:
        """Outline the lines from `start` on if they are long enough; return where the next lines start."""
        if not self.outlines or len(self.lines) - start < MIN_LINES or self.is_terminated:
            return start
        lines = self.lines[start:]
        if not is_self_contained(lines):
            return start
        self.lines[start:] = [OutlinedLines(lines)]
        return start + 1

    @contextmanager
    def insert_lines(self, index: int) -> Iterator[None]:
        """Insert the lines written inside, which contain no jumps, before line `index`."""
        lines, self.lines = self.lines, []
        yield
        lines[index:index] = self.lines
        self.lines = lines

    def alloca(self, size: int, hint: str = "slot", align: int = 16) -> str:
        """Allocate memory in the function's frame and return its address."""
        name = f"%{self.new_name(hint)}"
        self.entry.append(f"  {name} = alloca [{max(size, 1)} x i8], align {align}")
        return name

    def fill(self, address: str, byte: int, count: str | int, *, align: int = 1) -> None:
        """Fill memory with copies of a byte.

        Parameters
        ----------
        address : str
            The address of the first byte.
        byte : int
            The value, 0 to 255.
        count : str or int
            The number of bytes: a constant, or an i64 value.
        align : int
            The alignment of the address in bytes.
        """
        self.declare("void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        aligned = f" align {align}" if align > 1 else ""
        self.emit(f"call void @llvm.memset.p0.i64(ptr{aligned} {address}, i8 {byte}, i64 {count}, i1 false)")

    def declare(self, signature: str) -> None:
        """Declare a function of LLVM or the C library."""
        self.declarations.add(f"declare {signature}")

    def define(self, function: str) -> None:
        """Add another function to the module, once."""
        self.declarations.add(function)

    def add_metadata(self, content: str, *, distinct: bool = False) -> str:
        """Add a metadata node and return its name; "self" in the content is the node itself."""
        name = f"!{len(self.metadata)}"
        self.metadata.append(f"{name} = {'distinct ' if distinct else ''}!{{{content.replace('self', name)}}}")
        return name

    def add_debug_metadata(self, content: str) -> str:
        """Add a specialized metadata node, such as debug information, and return its name."""
        name = f"!{len(self.metadata)}"
        self.metadata.append(f"{name} = {content}")
        return name

    # Control flow.

    def begin_block(self, label: str) -> None:
        """Begin a basic block; the code before it falls through."""
        if not self.is_terminated:
            self.lines.append(f"  br label %{label}")
        self.lines.append(f"{label}:")
        self.is_terminated = False

    def jump(self, label: str, suffix: str = "") -> None:
        """Jump to a label."""
        self.emit(f"br label %{label}{suffix}")
        self.is_terminated = True

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        """Jump to one of two labels."""
        self.emit(f"br i1 {condition}, label %{then}, label %{otherwise}")
        self.is_terminated = True

    @contextmanager
    def execute_if(self, condition: str) -> Iterator[None]:
        """Execute the code written inside only if a condition holds."""
        inside, after = self.new_name("when"), self.new_name("after")
        self.branch(condition, inside, after)
        self.begin_block(inside)
        yield
        self.begin_block(after)

    def iterate_sides(self, condition: str) -> Iterator[bool]:
        """Yield True, then False: code written in each iteration executes if the condition has that value."""
        then, otherwise, after = (self.new_name(part) for part in ("then", "else", "after"))
        self.branch(condition, then, otherwise)
        for label, value in ((then, True), (otherwise, False)):
            self.begin_block(label)
            yield value
            if not self.is_terminated:
                self.jump(after)
        self.begin_block(after)

    @contextmanager
    def loop(self, count: str | int, hint: str = "i", *marks: str) -> Iterator[tuple[str, str]]:
        """Execute the code written inside `count` times; yield the i64 index and the label of the next iteration.

        `marks` are the loop's metadata nodes.
        """
        if count in (1, "1"):
            latch = self.new_name(f"{hint}.next")
            yield "0", latch
            self.begin_block(latch)
            return
        counter = self.alloca(8, hint)
        head, inside, latch, after = (self.new_name(f"{hint}.{part}") for part in ("head", "body", "next", "end"))
        self.emit(f"store i64 0, ptr {counter}")
        self.begin_block(head)
        index = self.value(f"load i64, ptr {counter}", hint)
        self.branch(self.value(f"icmp slt i64 {index}, {count}"), inside, after)
        self.begin_block(inside)
        yield index, latch
        self.begin_block(latch)
        self.emit(f"store i64 {self.value(f'add nuw nsw i64 {index}, 1')}, ptr {counter}")
        self.jump(
            head, f", !llvm.loop {self.add_metadata(', '.join(['self', *marks]), distinct=True)}" if marks else ""
        )
        self.begin_block(after)

    def update(self, address: str, type: str, operation: str, value: str) -> None:
        """Replace the number at an address by the result of an operation.

        Parameters
        ----------
        type : str
            The LLVM type of the number, such as "i64".
        operation : str
            The LLVM instruction, such as "add"; the number in memory is its first operand.
        value : str
            The second operand.
        """
        before = self.value(f"load {type}, ptr {address}")
        self.emit(f"store {type} {self.value(f'{operation} {type} {before}, {value}')}, ptr {address}")

    @property
    def no_unroll_metadata(self) -> str:
        """The metadata of a loop that must not be unrolled.

        Unrolling everything would multiply LLVM's compile time for little gain.
        """
        if not self._no_unroll_metadata:
            self._no_unroll_metadata = self.add_metadata('!"llvm.loop.unroll.disable"')
        return self._no_unroll_metadata

    def offset(self, address: str, by: str | int) -> str:
        """Return an address moved by a number of bytes."""
        return address if by == 0 else self.value(f"getelementptr i8, ptr {address}, i64 {by}", "p")
