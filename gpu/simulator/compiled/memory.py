"""Where the variables of a block's threads are: in registers, in scratch memory side by side, or in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu.simulator import ir
from gpu.simulator.compiled.assembly import Assembly
from gpu.simulator.compiled.own_memory import OwnMemory, Part, Rows
from gpu.simulator.compiled.plan import Frame, handed_on, places
from gpu.simulator.compiled.planner import plan
from gpu.simulator.compiled.recompute import Recomputable
from gpu.simulator.compiled.walking import walk
from gpu.simulator.types import Type

_WARP = 32

FAILED = "lockstep.failed"
"""The variable that a failed assertion writes 7 words of 8 bytes to: its number from 1, threadIdx, blockIdx."""

AROUND = 32 * 8
"""The bytes before and after a worker's memory, so that the lane next to the first or the last one may be read."""


@dataclass
class _Scratch:
    size: int = AROUND
    offsets: dict[object, int] = field(default_factory=dict)

    def take(self, key: object, size: int) -> int:
        if key not in self.offsets:
            self.offsets[key] = self.size
            self.size += -(-size // 64) * 64
        return self.offsets[key]


class Memory:
    """The memory that a kernel's plan needs, of blocks of one shape.

    Parameters
    ----------
    function : ir.Function
    block : sequence of int
    constants : frozenset of str
        The names of `__constant__` variables.
    """

    def __init__(self, function: ir.Function, block: Sequence[int], constants: frozenset[str]) -> None:
        self._function = function
        self.threads = block[0] * block[1] * block[2]
        self._padded = -(-self.threads // _WARP) * _WARP
        self._own = OwnMemory()
        planned = plan(function, constants, self._own)
        self._plan, self._frames, self._varying = planned.items, planned.frames, planned.varying
        self._computed = planned.computed
        self._recomputable = {
            path: Recomputable(
                frame.function,
                list(walk(frame.function.body)),
                frozenset(slot for each, slot in self._varying if each == path),
            )
            for path, frame in self._frames.items()
        }
        self.asm = Assembly()
        self._scratch = _Scratch()
        self._shared: dict[object, int] = {}
        self._shared_bytes = 0
        self._variables: dict[tuple[str, int], str] = {}
        self._memories: dict[tuple[str, int], str | tuple[int, int]] = {}
        self._parts: dict[tuple[str, int], Part] = {}
        self._module_variables: dict[str, str] = {}
        self._assertions: list[ir.Assertion] = []
        self._wide: set[tuple[str, int]] = set()
        self._thread = ""
        self._survey()

    def _survey(self) -> None:
        """Find the variables that outlive a place: those that are used in two, and those that such ones are made of."""
        seen: dict[tuple[str, int], int] = {}
        for number, used in enumerate(places(self._plan)):
            for key in used:
                if seen.setdefault(key, number) != number:
                    self._wide.add(key)
        declared = {
            (path, node.slot)
            for path, frame in self._frames.items()
            for node in walk(frame.function.body)
            if isinstance(node, ir.DeclareMemory)
        }
        self._wide |= declared.intersection(handed_on(self._plan))
        self._wide |= {("", slot) for slot in range(len(self._function.parameters)) if ("", slot) in self._varying}
        for path, frame in self._frames.items():
            reached = [slot for each, slot in (*self._wide, *self._computed) if each == path]
            for slot in reached:
                value = self.computed(frame, slot)
                for node in walk(value) if value is not None else ():
                    if isinstance(node, ir.Local) and node.slot not in reached:
                        reached.append(node.slot)
                        self._wide.add((path, node.slot))

    def computed(self, frame: Frame, slot: int) -> ir.Expression | None:
        key = (frame.path, slot)
        if key in self._computed:
            return self._computed[key]
        return self._recomputable[frame.path].value(slot) if key in self._varying and key in self._wide else None

    def variable(self, frame: Frame, slot: int, type: Type) -> str:
        key = (frame.path, slot)
        if key in self._varying and key in self._wide:
            return self.element(self._scratch.take(key, type.size * self._padded), type.size, self._thread)
        if key not in self._variables:
            self._variables[key] = self.asm.alloca(type.size, "variable")
        return self._variables[key]

    def element(self, offset: int, size: int, thread: str) -> str:
        """Return the address of a thread's element of an array of the scratch memory."""
        start = self.asm.offset("%scratch", offset)
        if size in (1, 2, 4, 8):
            return self.asm.value(f"getelementptr i{8 * size}, ptr {start}, i64 {thread}", "p")
        return self.asm.offset(start, self.asm.value(f"mul nsw i64 {thread}, {size}"))

    def memory(self, frame: Frame, slot: int) -> str | None:
        for shared in frame.function.shared:
            if shared.slot == slot:
                return self._shared_address(shared)
        found = self._memories.get((frame.path, slot))
        return self.element(*found, self._thread) if isinstance(found, tuple) else found

    def part(self, frame: Frame, slot: int) -> Part | None:
        """Return the memory that is taken apart and that a variable holds, or leads to."""
        key = (frame.path, slot)
        if key in self._wide and slot in self._slots_apart(frame.function):
            return Part(*key, 0)
        return self._parts.get(key)

    def lead_to(self, frame: Frame, slot: int, part: Part) -> None:
        """Take note that a parameter leads to memory that is taken apart."""
        self._parts[frame.path, slot] = part

    def member(self, part: Part, size: int) -> str:
        """Return the address of a thread's member."""
        rows = self.rows(part)
        if rows is not None:
            return self.in_row(part, str(part.offset // rows.width))
        key = (part.frame, part.slot, part.offset)
        return self.element(self._scratch.take(key, size * self._padded), size, self._thread)

    def members(self, part: Part) -> dict[int, int]:
        """Return the members of memory that is taken apart: their offsets and sizes in bytes."""
        rows = self.rows(part)
        if rows is not None:
            return {rows.width * number: rows.width for number in range(rows.count)}
        return self._own.taken_apart(self._frames[part.frame].function)[part.slot]

    def rows(self, part: Part) -> Rows | None:
        """Return what rows memory has become, None where each member has an array."""
        return self._own.in_rows(self._frames[part.frame].function).get(part.slot)

    def in_row(self, part: Part, row: str) -> str:
        """Return the address of a thread's value in a row."""
        rows = self.rows(part)
        assert rows is not None
        start = self._scratch.take((part.frame, part.slot, "rows"), rows.count * rows.width * self._padded)
        before = self.asm.value(f"mul nsw i64 {row}, {self._padded}")
        return self.element(start, rows.width, self.asm.value(f"add nsw i64 {before}, {self._thread}"))

    def _slots_apart(self, function: ir.Function) -> set[int]:
        return {*self._own.taken_apart(function), *self._own.in_rows(function)}

    def _shared_address(self, shared: ir.SharedArray) -> str:
        key: object = "extern" if shared.dynamic else shared
        if key not in self._shared:
            if shared.dynamic:
                self._shared[key] = -1
            else:
                self._shared[key] = self._shared_bytes
                self._shared_bytes += -(-shared.size // 64) * 64
        return "%extern" if shared.dynamic else self.asm.offset("%shared", self._shared[key])

    def own_memory(self, frame: Frame, slot: int, size: int) -> str:
        key = (frame.path, slot)
        if key in self._wide:
            stride = -(-size // 16) * 16
            wide = (self._scratch.take(key, stride * self._padded), stride)
            self._memories[key] = wide
            return self.element(*wide, self._thread)
        if key not in self._memories:
            self._memories[key] = self.asm.alloca(size, "own")
        place = self._memories[key]
        assert isinstance(place, str)
        return place

    def variable_of_module(self, name: str) -> str:
        return self._module_variables.setdefault(name, f"%module.{len(self._module_variables)}")

    def assertion(self, assertion: ir.Assertion) -> tuple[str, int]:
        self._assertions.append(assertion)
        return self.variable_of_module(FAILED), len(self._assertions)

    def is_shared(self, frame: Frame, pointer: ir.Expression) -> bool:
        match pointer:
            case ir.Local(_, slot, _):
                return any(shared.slot == slot for shared in frame.function.shared)
            case ir.Offset(_, inner, _) | ir.Member(_, inner, _) | ir.Cast(_, inner):
                return self.is_shared(frame, inner)
        return False
