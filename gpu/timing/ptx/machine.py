"""Runs a kernel's PTX for some blocks of a grid, in lockstep, and writes down what they do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import KernelError
from gpu.timing.ptx import exchanges
from gpu.timing.ptx.deciding import ASKS, deciding
from gpu.timing.ptx.flow import END, NaturalLoop, joins, loops
from gpu.timing.ptx.lanes import SampleLanes, together
from gpu.timing.ptx.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS, SampledMemory
from gpu.timing.ptx.operations import COMPARISONS, DTYPES, converted, operand_types, operation
from gpu.timing.ptx.path import PERIOD, Repeated, SampledPath, Visit
from gpu.timing.ptx.program import PtxInstruction, PtxKernel, placed
from gpu.timing.ptx.running import SPECIALS, BlockMemory, GridShape, LoopState, SampledBlocks
from gpu.timing.ptx.tiles import PLACE, offsets
from gpu.timing.ptx.values import constant_of, of_lanes, read_as, widened

Array = npt.NDArray[Any]
Value = Any
Step = Callable[[SampledBlocks, SampleLanes], None]

_MOST_VISITS = 40_000
_ROUNDS_BEFORE = 10
"""Rounds of a loop that are run before the rest may be left out: their differences say how it goes on."""
_ROUNDS_BEHIND = 2
_MOST_TURNS = 4
"""Different rounds in which a loop's comparisons turn, that are heeded: lanes that turn one by one would leave nothing
out."""
_DEVICE_RUNTIME = "__cudaCDP2"
"""How the names of what CUDA's device runtime has begin: launches, streams."""
_MOST_SPINS = 6
"""Rounds of a loop that waits for other blocks, before it is taken to have waited long enough."""


class PtxMachine:
    """A kernel, made ready to be run for some blocks.

    Parameters
    ----------
    kernel : PtxKernel
    variables : sequence of PtxVariable
        Of its file, those in "global" and "const" memory.
    addresses : mapping of str to int
        Where those are.
    values : bool
        Whether what decides neither a way nor an address is computed, too, and stored.
    """

    kept: tuple[str, ...] = (*ASKS, "bar", "barrier")
    """What is run though its value decides nothing."""

    def __init__(self, kernel: PtxKernel, addresses: Mapping[str, np.int64], *, values: bool = True) -> None:
        self.kernel = kernel
        self._deciding = None if values else self.deciding(kernel)
        self.addresses = addresses
        self._joins = joins(kernel.blocks)
        self.loops = loops(kernel.blocks)
        self._local, self._local_bytes = placed([each for each in kernel.variables if each.space == "local"])
        self._shared, self._shared_bytes = placed(kernel.shared)
        self._private = _private_registers(kernel)
        self._ever_read = {name for block in kernel.blocks for each in block.instructions for name in each.read}
        self._waiting = {loop for loop in self.loops.values() if _only_waits(kernel, loop)}
        self._code = [
            [
                code
                for place, instruction in enumerate(block.instructions)
                if (code := self._compiled(instruction, place)) is not None
            ]
            for block in kernel.blocks
        ]

    @property
    def waits_for_others(self) -> bool:
        """Whether there are loops that go round until another block has stored something."""
        return bool(self._waiting)

    @staticmethod
    def deciding(kernel: PtxKernel) -> set[PtxInstruction]:
        """Return the instructions whose values are wanted."""
        return deciding(kernel)

    def run(
        self,
        shape: GridShape,
        parameters: Array,
        blocks: Sequence[int],
        memory: SampledMemory,
        most_visits: int = _MOST_VISITS,
    ) -> SampledPath:
        """Run some blocks of a launch together.

        Parameters
        ----------
        shape : GridShape
        parameters : array
            The bytes of the kernel's parameters.
        blocks : sequence of int
            The blocks' numbers in the grid.
        memory : SampledMemory
            What they load from and store to.
        most_visits : int
            Basic blocks after which the rest is left alone.
        """
        run = SampledBlocks(BlockMemory(self.kernel.shared_bytes, self._local_bytes), shape, parameters, blocks, memory)
        with np.errstate(all="ignore"):
            self.follow(run, most_visits)
        return run.path

    def follow(self, run: SampledBlocks, most_visits: int) -> None:
        """Lead lanes through the basic blocks: those that part wait for each other where their ways meet."""
        frames: list[_Meeting] = [_Meeting(END)]
        at, mask = 0, run.everyone
        live: SampleLanes | None = mask
        visits = 0
        while True:
            frame = frames[-1]
            if live is None or at == frame.place:
                frame.arrived = together(frame.arrived, live)
                if frame.pending:
                    at, live = frame.pending.pop()
                    continue
                frames.pop()
                if not frames:
                    return
                at, live = frame.place, frame.arrived
                continue
            visits += 1
            if visits > most_visits:
                run.path.ended = False
                return
            taken, other = self._visit(run, at, live)
            follows = self.kernel.blocks[at].follows
            last = self.kernel.blocks[at].instructions[-1] if self.kernel.blocks[at].instructions else None
            if last is None or not last.ends_block:
                at = follows[0] if follows else END
                continue
            if last.opcode != "bra":
                run.leave(taken)
                live = other
                at = follows[-1] if follows else END
                continue
            target = follows[0]
            behind = follows[-1] if last.guard else target
            if taken is not None and target <= at:
                taken, other = self.look_at_loop(run, at, target, taken, other)
            elif target <= at:
                run.loops.pop(self.loops[at, target], None)  # who comes to it again begins anew
            if other is None:
                at, live = target, taken
            elif taken is None:
                at, live = behind, other
            else:
                join = self._joins[at]
                if join != frame.place:
                    frame = _Meeting(join)
                    frames.append(frame)
                # Who jumps on waits for those who do not: of an H200 and an H100. Who goes round again does not wait.
                first, later = (target, taken), (behind, other)
                if target > at:
                    first, later = later, first
                frame.pending.append(later)
                at, live = first

    def _visit(self, run: SampledBlocks, at: int, mask: SampleLanes) -> tuple[SampleLanes | None, SampleLanes | None]:
        """Run a basic block; return the lanes that its jump takes along, and the others."""
        run.requests = []
        jump: tuple[SampleLanes | None, SampleLanes | None] = (mask, None)
        for code in self._code[at]:
            found = code(run, mask)
            if found is not None:
                jump = found
        places = tuple(place for place, _ in run.requests)
        run.path.steps.append(Visit(at, mask.of_warp, tuple(request for _, request in run.requests), places))
        return jump

    # Loops.

    def look_at_loop(
        self, run: SampledBlocks, last: int, header: int, taken: SampleLanes, other: SampleLanes | None
    ) -> tuple[SampleLanes | None, SampleLanes | None]:
        """Leave rounds out where they can be foreseen; return who goes round again, and who goes on."""
        loop = self.loops[last, header]
        state = run.loops.get(loop)
        if state is None or state.mask.count != taken.count or not np.array_equal(state.mask.bits, taken.bits):
            state = run.loops[loop] = LoopState(taken)
        state.rounds += 1
        if loop in self._waiting and state.rounds > _MOST_SPINS:
            del run.loops[loop]
            return None, together(taken, other)
        if other is not None or not loop.leaves_once:
            return taken, other
        state.starts.append(len(run.path.steps))
        state.registers.append({name: run.registers[name] for name in loop.written if name in run.registers})
        del state.registers[:-3]
        del state.starts[: -PERIOD - 1]
        if state.rounds >= _ROUNDS_BEFORE and not state.rounds % 2:
            rest = self._rounds_left(run, loop, state)
            if rest > _ROUNDS_BEHIND + PERIOD:
                rest = min(rest, self._rounds_alike(run, loop, state))
            skipped = (rest - _ROUNDS_BEHIND) // PERIOD * PERIOD
            if skipped > 0:
                self._leave_out(run, loop, state, skipped)
                run.loops[loop] = LoopState(state.mask, rounds=skipped - rest)
        return taken, other

    def _rounds_left(self, run: SampledBlocks, loop: NaturalLoop, state: LoopState) -> int:
        """Return how many rounds all lanes are still to go, as far as their registers tell."""
        rounds = self.rounds_of_lanes(run, loop, state)
        return 0 if rounds is None else int(np.min(rounds))

    def rounds_of_lanes(self, run: SampledBlocks, loop: NaturalLoop, state: LoopState) -> Array | None:
        """Return how many rounds each lane is still to go, or one number for all; None if registers do not tell."""
        block = self.kernel.blocks[loop.last]
        jump = block.instructions[-1]
        negated, guard = jump.negated, jump.guard
        decides = None
        for each in reversed(block.instructions[:-1]):
            if guard in each.written:
                if each.opcode == "not":
                    guard, negated = each.operands[1], not negated
                    continue
                decides = each
                break
        if decides is None or decides.opcode != "setp" or len(decides.operands) != 3:
            return None
        moving = self._distance(run, loop, state, decides)
        if moving is None:
            return None
        distance, change = moving
        comparison = decides.words[0]
        if negated:
            comparison = _NEGATED.get(comparison, "")
        comparison = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(comparison, comparison)
        if comparison in ("gt", "ge"):
            distance, change = -distance, -change
            comparison = {"gt": "lt", "ge": "le"}[comparison]
        if not np.all(change):
            return None
        if comparison == "ne":
            rounds = np.where((-distance % change == 0) & (-distance // change > 0), -distance // change, 0)
        elif comparison in ("lt", "le") and np.all(change > 0):
            rounds = -(distance // change) if comparison == "lt" else -distance // change + 1
        else:
            return None
        return np.asarray(rounds)

    def _rounds_alike(self, run: SampledBlocks, loop: NaturalLoop, state: LoopState) -> int:
        """Return for how many rounds what the loop compares, and can be foreseen, comes out as in the last ones."""
        turns: set[int] = set()
        for number in loop.blocks:
            for each in self.kernel.blocks[number].instructions:
                if each.opcode != "setp" or len(each.operands) != 3 or "|" in each.operands[0]:
                    continue
                moving = self._distance(run, loop, state, each)
                if moving is None:
                    continue
                distance, change = moving
                # Where they are equal on the way: "less" says something else there, or a round later.
                away = np.ceil(-distance / np.where(change == 0, 1, change))
                near = away[(change != 0) & (away >= -PERIOD)]
                turns.update(np.unique(near).astype(np.int64).tolist()[: _MOST_TURNS + 1])
        if not turns or len(turns) > _MOST_TURNS:
            return 1 << 62
        return max(min(turns), 0)

    def _distance(
        self, run: SampledBlocks, loop: NaturalLoop, state: LoopState, compares: PtxInstruction
    ) -> tuple[Array, Array] | None:
        """Return by how much a comparison's sides differ, and by how much more with each round; None if not known."""
        dtype = DTYPES[compares.type]
        if dtype.kind not in "iu":
            return None
        if dtype.kind == "u":
            dtype = np.dtype(f"i{dtype.itemsize}")  # what is below 0 comes up to it: an image's upper edge
        sides = []
        for operand in compares.operands[1:]:
            if not operand.startswith("%"):
                sides.append((int(constant_of(operand, dtype)), 0))
                continue
            now = self._as_integers(run.registers.get(operand), dtype, state.mask)
            step = self._step_of(operand, dtype, state) if operand in loop.written else 0
            if step is None or now is None:
                return None
            sides.append((now, step))
        (a, da), (b, db) = sides
        return np.asarray(a) - np.asarray(b), np.asarray(da) - np.asarray(db)

    def _step_of(self, name: str, dtype: np.dtype[Any], state: LoopState) -> Any:
        """Return by how much a register has changed in each of the last rounds; None where that differs."""
        values = [self._as_integers(each.get(name), dtype, state.mask) for each in state.registers]
        if len(values) < 3 or any(value is None for value in values):
            return None
        first, second = values[1] - values[0], values[2] - values[1]
        return second if np.array_equal(first, second) else None

    @staticmethod
    def _as_integers(value: Value, dtype: np.dtype[Any], mask: SampleLanes) -> Any:
        if value is None or value.dtype.itemsize != dtype.itemsize:
            return None
        seen = value.view(dtype)
        seen = seen[mask.bits] if seen.ndim else seen
        return seen.astype(np.int64)

    def _leave_out(self, run: SampledBlocks, loop: NaturalLoop, state: LoopState, skipped: int) -> None:
        """Move every register that moves by the same in each round so many rounds ahead."""
        start = state.starts[-PERIOD - 1]
        run.path.steps.append(Repeated(skipped // PERIOD, tuple(run.path.steps[start:])))
        older, old, now = state.registers
        for name in loop.written:
            if name not in older or name not in old or name not in now:
                continue
            values = older[name], old[name], now[name]
            if values[0].dtype.kind not in "iu" or not values[0].dtype == values[1].dtype == values[2].dtype:
                continue
            first, second = values[1] - values[0], values[2] - values[1]
            if not np.array_equal(of_lanes(first, state.mask), of_lanes(second, state.mask)):
                continue
            moved = values[2] + second * values[2].dtype.type(skipped)
            if moved.ndim and name in run.registers and not run.covers(state.mask):
                moved = np.where(state.mask.bits, moved, run.registers[name])
            run.registers[name] = moved

    # Instructions.

    def _decides(self, instruction: PtxInstruction) -> bool:
        return self._deciding is None or instruction in self._deciding

    def _compiled(self, instruction: PtxInstruction, place: int) -> Callable[[SampledBlocks, SampleLanes], Any] | None:
        """Return what runs an instruction; of a jump it gives back who takes it, and who does not.

        None of what does nothing but compute what decides nothing.
        """
        run = self._unguarded(instruction, place)
        if not (instruction.ends_block or instruction.opcode in self.kept or self._decides(instruction)):
            return None
        guard, negated = instruction.guard, instruction.negated
        if instruction.ends_block:
            if not guard:
                return lambda state, mask: (mask, None)

            def jump(state: SampledBlocks, mask: SampleLanes) -> tuple[SampleLanes | None, SampleLanes | None]:
                holds, fails = mask.split(state.registers[guard])
                return (fails, holds) if negated else (holds, fails)

            return jump
        if not guard:
            return run

        def guarded(state: SampledBlocks, mask: SampleLanes) -> None:
            holds, fails = mask.split(state.registers[guard])
            chosen = fails if negated else holds
            if chosen is not None:
                run(state, chosen)

        return guarded

    def _unguarded(self, instruction: PtxInstruction, place: int) -> Step:
        opcode, words = instruction.opcode, instruction.words
        if opcode in ("ld", "ldu"):
            return self._parameter(instruction) if "param" in words else self._load(instruction, place)
        if opcode == "st":
            return self._store(instruction, place)
        if opcode in ("atom", "red"):
            return self._atomic(instruction, place)
        if opcode == "mov":
            return self._move(instruction)
        if opcode == "setp":
            return self._compare(instruction)
        if opcode in ("selp", "slct"):
            return self._select(instruction)
        if opcode == "cvt":
            return self._convert(instruction)
        if opcode in ("shfl", "vote", "match", "redux", "activemask", "elect"):
            return self._exchange(instruction)
        if opcode == "tex":
            return self._fetch(instruction, place)
        if opcode == "ldmatrix":
            return self._load_matrices(instruction, place)
        if opcode == "cp" and words[:1] == ("async",) and "bulk" not in words:
            return self._copy(instruction, place)
        if opcode in ("bar", "barrier") and "red" in words:
            return self._block_vote(instruction)
        if opcode == PLACE:
            return self._place_in_tile(instruction)
        if opcode in ("wmma", "mma", "wgmma"):
            return self._product(instruction)
        if opcode == "cp" and words[:2] == ("async", "bulk"):
            return self._copy_in_bulk(instruction, place)
        if opcode == "mbarrier":
            return self._barrier_in_memory(instruction)
        if opcode == "cvta":
            return self._generic(instruction)
        if opcode == "isspacep":
            return self._in_space(instruction)
        if opcode in (
            "bar", "barrier", "membar", "fence", "nanosleep", "bra", "ret", "exit", "trap", "prefetch", "pragma",
            "discard", "griddepcontrol", "setmaxnreg", "applypriority",
        ):  # fmt: skip
            return lambda state, mask: None
        if opcode == "call" and any(each.startswith(_DEVICE_RUNTIME) for each in instruction.operands):
            raise KernelError(
                f"{self.kernel.name} launches kernels itself. How many only a run of all its blocks could tell, and "
                "the model runs a few.",
                advice="A kernel that launches kernels is measured on a GPU, or simulated.",
            )
        if opcode == "call":
            raise KernelError(
                f"{self.kernel.name} calls a function that is not its own, which the model does not follow.",
                advice="Kernels that launch kernels, print or allocate are not modeled.",
            )
        return self._arithmetic(instruction)

    def _put(self, name: str, *, partly: bool = False) -> Callable[[SampledBlocks, SampleLanes, Value], None]:
        """Return what gives a register its value in some lanes."""
        if name in ("_", ""):
            return lambda state, mask, value: None
        if name in self._private and not partly:

            def replace(state: SampledBlocks, mask: SampleLanes, value: Value) -> None:
                state.registers[name] = value

            return replace

        def merge(state: SampledBlocks, mask: SampleLanes, value: Value) -> None:
            before = state.registers.get(name)
            if before is None or state.covers(mask):
                state.registers[name] = value
                return
            if before.dtype != value.dtype:
                before = before.view(value.dtype) if before.itemsize == value.itemsize else before.astype(value.dtype)
            state.registers[name] = np.where(mask.bits, value, before)

        return merge

    def _get(self, operand: str, type: str) -> Callable[[SampledBlocks], Value]:
        """Return what gives an operand's value as a type."""
        dtype = DTYPES[type]
        if operand.startswith("%") and operand[1:].partition(".")[0] in SPECIALS:
            name = operand[1:]
            return lambda state: read_as(state.special(name), dtype)
        if operand.startswith("%") or (re.fullmatch(r"[a-z]\w*", operand) and operand in self.kernel.widths):
            name = operand

            def register(state: SampledBlocks) -> Value:
                value = state.registers[name]
                return value if value.dtype == dtype else read_as(value, dtype)

            return register
        if re.fullmatch(r"[A-Za-z_$][\w$]*", operand):
            return self._address_of(operand, dtype)
        if operand == "WARP_SZ":
            operand = "32"
        constant = constant_of(operand, dtype)
        return lambda state: constant

    def _address_of(self, name: str, dtype: np.dtype[Any]) -> Callable[[SampledBlocks], Value]:
        where: Any
        if name in self._shared:
            where = self._shared[name]
        elif name in self._local:
            where = self._local[name]
        elif name in self.addresses:
            where = int(self.addresses[name])
        else:
            where = self._shared_bytes  # an extern array lies behind the others
            where = -(-where // 16) * 16
        value = np.int64(where).astype(dtype)
        return lambda state: value

    def _arithmetic(self, instruction: PtxInstruction) -> Step:
        compute = operation(instruction.opcode, instruction.words)
        operands = instruction.operands[1:]
        types = operand_types(instruction.opcode, instruction.words, instruction.type, len(operands))
        read = [self._get(operand, type) for operand, type in zip(operands, types, strict=True)]
        put = self._put(instruction.operands[0].partition("|")[0], partly=bool(instruction.guard))
        if len(read) == 1:
            one = read[0]
            return lambda state, mask: put(state, mask, compute(one(state)))
        if len(read) == 2:
            first, second = read
            return lambda state, mask: put(state, mask, compute(first(state), second(state)))
        return lambda state, mask: put(state, mask, compute(*(each(state) for each in read)))

    def _move(self, instruction: PtxInstruction) -> Step:
        to, of = instruction.operands
        if to.startswith("{"):
            return self._unpack(instruction, _listed(to), of)
        if of.startswith("{"):
            return self._pack(instruction, to, _listed(of))
        get, put = self._get(of, instruction.type), self._put(to, partly=bool(instruction.guard))
        return lambda state, mask: put(state, mask, get(state))

    def _unpack(self, instruction: PtxInstruction, to: list[str], of: str) -> Step:
        get = self._get(of, instruction.type)
        puts = [self._put(name, partly=bool(instruction.guard)) for name in to]
        bits = DTYPES[instruction.type].itemsize * 8 // len(to)
        part = DTYPES[f"b{bits}"]

        def unpack(state: SampledBlocks, mask: SampleLanes) -> None:
            value = read_as(get(state), DTYPES[f"b{bits * len(to)}"])
            for number, put in enumerate(puts):
                put(state, mask, (value >> value.dtype.type(bits * number)).astype(part))

        return unpack

    def _pack(self, instruction: PtxInstruction, to: str, of: list[str]) -> Step:
        whole = DTYPES[instruction.type]
        bits = whole.itemsize * 8 // len(of)
        parts = [self._get(name, f"b{bits}") for name in of]
        put = self._put(to, partly=bool(instruction.guard))

        def pack(state: SampledBlocks, mask: SampleLanes) -> None:
            value = parts[0](state).astype(whole)
            for number, part in enumerate(parts[1:], start=1):
                value = value | (part(state).astype(whole) << whole.type(bits * number))
            put(state, mask, value)

        return pack

    def _compare(self, instruction: PtxInstruction) -> Step:
        compare = COMPARISONS[instruction.words[0]]
        first, second = (self._get(operand, instruction.type) for operand in instruction.operands[1:3])
        names = instruction.operands[0].split("|")
        puts = [self._put(name.strip(), partly=bool(instruction.guard)) for name in names]
        joined = next((word for word in instruction.words[1:] if word in ("and", "or", "xor")), "")
        third = self._get(instruction.operands[3].lstrip("!"), "pred") if joined else None
        inverted = joined and instruction.operands[3].startswith("!")

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            holds = np.asarray(compare(first(state), second(state)))
            if third is not None:
                other = third(state)
                other = ~other if inverted else other
                holds = holds & other if joined == "and" else holds | other if joined == "or" else holds ^ other
            puts[0](state, mask, holds)
            if len(puts) > 1:
                puts[1](state, mask, ~holds)

        return run

    def _select(self, instruction: PtxInstruction) -> Step:
        first, second = (self._get(operand, instruction.type) for operand in instruction.operands[1:3])
        chooses = self._get(instruction.operands[3], "pred" if instruction.opcode == "selp" else "s32")
        put = self._put(instruction.operands[0], partly=bool(instruction.guard))
        signed = instruction.opcode == "slct"

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            chosen = chooses(state)
            chosen = chosen >= 0 if signed else chosen
            put(state, mask, np.where(chosen, first(state), second(state)))

        return run

    def _convert(self, instruction: PtxInstruction) -> Step:
        words = instruction.words
        if "tf32" in words:
            return self._to_tf32(instruction)
        if "f16x2" in words:
            return self._to_two_halves(instruction)
        to, of = (word for word in words if re.fullmatch(r"[bsuf]\d+", word))
        get = self._get(instruction.operands[1], of)
        put = self._put(instruction.operands[0], partly=bool(instruction.guard))
        return lambda state, mask: put(state, mask, converted(get(state), words, to, of))

    def _to_tf32(self, instruction: PtxInstruction) -> Step:
        get, put = self._get(instruction.operands[1], "b32"), self._put(instruction.operands[0])
        half, kept = np.uint32(1 << 12), np.uint32(0xFFFFE000)
        return lambda state, mask: put(state, mask, (get(state) + half) & kept)

    def _to_two_halves(self, instruction: PtxInstruction) -> Step:
        high, low = (self._get(operand, "f32") for operand in instruction.operands[1:3])
        put = self._put(instruction.operands[0], partly=bool(instruction.guard))

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            bits = (get(state).astype(np.float16).view(np.uint16).astype(np.uint32) for get in (high, low))
            put(state, mask, next(bits) << np.uint32(16) | next(bits))

        return run

    def _generic(self, instruction: PtxInstruction) -> Step:
        """Turn an address of a state space into one of all, or back; those of global memory are the same."""
        get = self._get(instruction.operands[1], "s64")
        put = self._put(instruction.operands[0], partly=bool(instruction.guard))
        window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(
            next((word for word in instruction.words if word in ("shared", "local")), ""), 0
        )
        tag = np.int64(window << WINDOW_BITS)
        if "to" in instruction.words:
            return lambda state, mask: put(state, mask, get(state) & ~tag if window else get(state))
        return lambda state, mask: put(state, mask, get(state) | tag)

    def _in_space(self, instruction: PtxInstruction) -> Step:
        get, put = self._get(instruction.operands[1], "s64"), self._put(instruction.operands[0])
        window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(instruction.words[0], 0)

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            found = get(state) >> WINDOW_BITS
            put(state, mask, np.asarray(found == window if window else found > LOCAL_WINDOW))

        return run

    # Exchanges.

    def _exchange(self, instruction: PtxInstruction) -> Step:
        opcode, words, operands = instruction.opcode, instruction.words, instruction.operands
        names = [name.strip() for name in operands[0].split("|")]
        puts = [self._put(name, partly=bool(instruction.guard)) for name in names]
        if opcode in ("activemask", "elect"):

            def active(state: SampledBlocks, mask: SampleLanes) -> None:
                puts[0](state, mask, exchanges.voted("ballot", np.ones(state.lanes, np.bool_), mask))

            return active
        type = "pred" if opcode == "vote" else instruction.type
        inverted = opcode == "vote" and operands[1].startswith("!")
        get = self._get(operands[1].lstrip("!"), type)
        if opcode == "shfl":
            mode = next(word for word in words if word in ("up", "down", "bfly", "idx"))
            by, limits = self._get(operands[2], "u32"), self._get(operands[3], "u32")

            def shuffle(state: SampledBlocks, mask: SampleLanes) -> None:
                value, moved, bounds = (exchanges.spread(each(state), state.lanes) for each in (get, by, limits))
                received, inside = exchanges.shuffled(mode, value, moved, bounds)
                puts[0](state, mask, received)
                if len(puts) > 1:
                    puts[1](state, mask, inside)

            return shuffle
        mode = next(word for word in words if word not in ("sync", "aligned"))

        def exchange(state: SampledBlocks, mask: SampleLanes) -> None:
            value = exchanges.spread(get(state), state.lanes)
            if opcode == "vote":
                puts[0](state, mask, exchanges.voted(mode, ~value if inverted else value, mask))
            elif opcode == "match":
                puts[0](state, mask, exchanges.matched(mode, value, mask))
            else:
                puts[0](state, mask, exchanges.summed_up(mode, value, mask))

        return exchange

    def _block_vote(self, instruction: PtxInstruction) -> Step:
        mode = next(word for word in instruction.words if word in ("popc", "and", "or"))
        inverted = instruction.operands[-1].startswith("!")
        get, put = self._get(instruction.operands[-1].lstrip("!"), "pred"), self._put(instruction.operands[0])

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            holds = exchanges.spread(get(state), state.lanes)
            rows = ((~holds if inverted else holds) & mask.bits).reshape(len(state.path.blocks), -1)
            here = mask.bits.reshape(rows.shape)
            each = rows.shape[1]
            if mode == "popc":
                put(state, mask, np.repeat(rows.sum(axis=1).astype(np.uint32), each))
            else:
                put(state, mask, np.repeat((rows == here).all(axis=1) if mode == "and" else rows.any(axis=1), each))

        return run

    # Memory.

    def _parameter(self, instruction: PtxInstruction) -> Step:
        name, _, more = instruction.operands[1].strip("[]").partition("+")
        offset = next(each.offset for each in self.kernel.parameters if each.name == name.strip()) + int(more or 0)
        dtype = DTYPES[instruction.type]
        puts = [self._put(each) for each in _listed(instruction.operands[0])]

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            for number, put in enumerate(puts):
                start = offset + number * dtype.itemsize
                put(state, mask, state.parameters[start : start + dtype.itemsize].view(dtype)[0])

        return run

    def _place_in_tile(self, instruction: PtxInstruction) -> Step:
        """Where each lane's word of a tile is."""
        base, stride = self._place(instruction.operands[1]), self._get(instruction.operands[2] or "0", "s32")
        put = self._put(instruction.operands[0], partly=bool(instruction.guard))

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            apart = np.asarray(stride(state)).astype(np.int64)
            lane = state.special("laneid").astype(np.int64)
            put(state, mask, (base(state) + offsets(instruction.words, apart, lane)).astype(np.uint64))

        return run

    def _product(self, instruction: PtxInstruction) -> Step:
        """A product of tiles, whose values nobody asks for here."""
        if self._decides(instruction):
            raise KernelError(
                f"In {self.kernel.name} products of tiles decide ways or addresses, which the model does not compute."
            )
        return lambda state, mask: None

    def _place(self, operand: str) -> Callable[[SampledBlocks], Value]:
        """Return what gives the address in brackets."""
        inner = operand.strip("[]").strip()
        found = re.fullmatch(r"([%\w$]+)\s*(?:\+\s*(-?\w+))?", inner)
        if found is None:
            raise KernelError(f"The compiler's text has the address {operand!r}, which is not understood.")
        offset = np.int64(int(found[2], 0) if found[2] else 0)
        base = found[1]
        if re.fullmatch(r"-?\d+", base):
            constant = np.int64(int(base)) + offset
            return lambda state: constant
        if base.startswith("%") or base in self.kernel.widths:
            width = self._width(base)
            if width == 4:

                def narrow(state: SampledBlocks) -> Value:
                    return read_as(state.registers[base], DTYPES["u32"]).astype(np.int64) + offset

                return narrow
        get = self._get(base, "s64")
        return lambda state: get(state) + offset

    def _is_read(self, register: str) -> bool:
        return register in self._ever_read

    def _width(self, register: str) -> int:
        prefix = re.sub(r"\d+$", "", register)
        return self.kernel.widths.get(register, self.kernel.widths.get(prefix, 8))

    def _memory_operand(
        self, instruction: PtxInstruction, operand: str
    ) -> tuple[Callable[[SampledBlocks], Value], str, np.dtype[Any], int]:
        space = next((word for word in instruction.words if word in ("global", "shared", "local", "const")), "generic")
        count = next((int(word[1:]) for word in instruction.words if word in ("v2", "v4", "v8")), 1)
        return self._place(operand), space, DTYPES[instruction.type], count

    def _load(self, instruction: PtxInstruction, place: int) -> Step:
        where, space, dtype, count = self._memory_operand(instruction, instruction.operands[1])
        names = _listed(instruction.operands[0])
        puts = [self._put(name, partly=bool(instruction.guard)) for name in names]
        widths = [self._width(name) for name in names]
        volatile = "volatile" in instruction.words or "relaxed" in instruction.words or "acquire" in instruction.words
        decides = self._decides(instruction)

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            addresses = where(state)
            kind, places = state.resolve(space, addresses, mask)
            state.ask(place, kind, "ld", places, dtype.itemsize * count, mask, volatile=volatile)
            if not decides:
                return
            values = state.load(kind, places, dtype, count, mask)
            for value, put, width in zip(values, puts, widths, strict=True):
                put(state, mask, widened(value, width))

        return run

    def _store(self, instruction: PtxInstruction, place: int) -> Step:
        where, space, dtype, count = self._memory_operand(instruction, instruction.operands[0])
        names = _listed(instruction.operands[1])
        stored = f"b{8 * dtype.itemsize}"
        decides = self._decides(instruction)
        gets = []
        for name in names:
            own = self._width(name) if name[:1] == "%" else dtype.itemsize
            gets.append(self._get(name, instruction.type if own == dtype.itemsize else f"b{8 * own}"))

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            addresses = where(state)
            kind, places = state.resolve(space, addresses, mask)
            state.ask(place, kind, "st", places, dtype.itemsize * count, mask)
            if not decides:
                return
            values = [read_as(get(state), DTYPES[stored]) for get in gets]
            state.store(kind, places, values, DTYPES[stored], mask)

        return run

    def _load_matrices(self, instruction: PtxInstruction, place: int) -> Step:
        """Ask for the rows of matrices of 8 x 8 halves, whose values decide nothing."""
        where = self._place(instruction.operands[1])
        puts = [self._put(name) for name in _listed(instruction.operands[0])]

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            kind, places = state.resolve("shared", where(state), mask)
            state.ask(place, kind, "ld", places, 4 * len(puts), mask)
            for put in puts:
                put(state, mask, np.uint32(0))

        return run

    def _copy(self, instruction: PtxInstruction, place: int) -> Step:
        """Ask for what is copied to shared memory, which no lane waits for: copies are far enough ahead."""
        if "shared" not in instruction.words:  # the end of a group, or the wait for some
            return lambda state, mask: None
        where, size = self._place(instruction.operands[1]), int(instruction.operands[2])
        given = self._get(instruction.operands[3], "u32") if len(instruction.operands) > 3 else None

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            chosen: SampleLanes | None = mask
            if given is not None:
                chosen = mask.split(given(state) > 0)[0]
            if chosen is not None:
                state.ask(place, "global", "ld", where(state), size, chosen)

        return run

    def _copy_in_bulk(self, instruction: PtxInstruction, place: int) -> Step:
        """Ask for what a lane copies to shared memory at once, which nobody waits for: copies are far enough ahead."""
        words = instruction.words
        if "commit_group" in words or "wait_group" in words:
            return lambda state, mask: None
        if words[2] not in ("shared::cluster", "shared::cta") or words[3] != "global":
            raise KernelError("The model knows copies in bulk from global to shared memory only.")
        where, size = self._place(instruction.operands[1]), self._get(instruction.operands[2], "u32")
        return lambda state, mask: state.ask_in_bulk(place, where(state), size(state), mask)

    def _barrier_in_memory(self, instruction: PtxInstruction) -> Step:
        """Find each phase over that is waited for."""
        if not instruction.written:
            return lambda state, mask: None
        put, value = self._put(instruction.written[0]), "wait" in instruction.words[0]
        return lambda state, mask: put(state, mask, np.bool_(True) if value else np.uint64(0))

    def _fetch(self, instruction: PtxInstruction, place: int) -> Step:
        texture, _, places = instruction.operands[1].strip("[]").partition(",")
        names = _listed(places.strip())
        if len(names) != 1 or "1d" not in instruction.words:
            raise KernelError("The model knows only textures of one dimension.")
        base, index = self._get(texture.strip(), "s64"), self._get(names[0], "s32")
        puts = [self._put(name) for name in _listed(instruction.operands[0])]
        decides = self._decides(instruction)

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            size = 1  # of an element: textures over memory are of bytes here
            addresses = base(state) + index(state).astype(np.int64) * size
            state.ask(place, "global", "ld", addresses, size, mask)
            if not decides:
                return
            (value,) = state.load("global", addresses, DTYPES["u8"], 1, mask)
            puts[0](state, mask, value.astype(np.uint32))
            for put in puts[1:]:
                put(state, mask, np.uint32(0))

        return run

    def _atomic(self, instruction: PtxInstruction, place: int) -> Step:
        returns = instruction.opcode == "atom" and instruction.operands[0] not in ("_",)
        operands = instruction.operands[1:] if instruction.opcode == "atom" else instruction.operands
        where, space, dtype, _ = self._memory_operand(instruction, operands[0])
        gets = [self._get(each, instruction.type) for each in operands[1:]]
        put = self._put(instruction.operands[0], partly=bool(instruction.guard)) if returns else None
        modes = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
        mode = next(word for word in instruction.words if word in modes)
        kind_of = "atom" if returns else "red"
        decides = self._decides(instruction)
        counts_up = mode == "add" and operands[1] == "1" and not self._is_read(instruction.operands[0])
        whole_sum = mode == "add" and instruction.type in ("u32", "s32") and not self._is_read(instruction.operands[0])

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            kind, places = state.resolve(space, where(state), mask)
            uniform = whole_sum and not places.ndim
            state.ask(place, kind, kind_of, places, dtype.itemsize, mask, counts_up=counts_up, uniform_sum=uniform)
            if not decides:
                return
            values = [get(state) for get in gets]
            old = state.atomic(kind, mode, places, values, dtype, mask)
            if put is not None:
                put(state, mask, old)
                if kind == "global" and mode in ("add", "inc") and dtype.kind in "iu":
                    state.draw(mode, places, values[0], dtype, mask)

        return run


_NEGATED = {
    "lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq", "lo": "hs", "hs": "lo", "hi": "ls",
    "ls": "hi",
}  # fmt: skip


@dataclass
class _Meeting:
    """Where lanes that have parted meet again: who is there, and who still has to come, from where."""

    place: int
    pending: list[tuple[int, SampleLanes]] = field(default_factory=list)
    arrived: SampleLanes | None = None


def _listed(operand: str) -> list[str]:
    return [name.strip() for name in operand.strip("{} ").split(",")]


def _private_registers(kernel: PtxKernel) -> frozenset[str]:
    """Return the registers that are read only behind their write, in the same basic block."""
    found: set[str] = set()
    shared: set[str] = set()
    for block in kernel.blocks:
        written: set[str] = set()
        for each in block.instructions:
            for name in each.read:
                if name not in written:
                    shared.add(name)
            if not each.guard:
                written.update(each.written)
            else:
                shared.update(each.written)
        found |= written
    return frozenset(found - shared)


def _only_waits(kernel: PtxKernel, loop: NaturalLoop) -> bool:
    """Whether a loop looks at memory that other blocks write, and stores nothing: it waits for them."""
    looks = False
    for number in loop.blocks:
        for each in kernel.blocks[number].instructions:
            if each.opcode == "st":
                return False
            looks |= each.opcode == "ld" and any(w in each.words for w in ("volatile", "acquire", "relaxed"))
            looks |= each.opcode == "atom" and any(word in each.words for word in ("cas", "exch"))
    return looks
