"""Execute a kernel's PTX for some blocks of a grid, in lockstep, and record their paths and memory requests."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gpu.base.errors import KernelError
from gpu.base.lane_mask import union_masks
from gpu.timing.ptx import exchanges
from gpu.timing.ptx.analysis.accumulators import find_accumulators
from gpu.timing.ptx.analysis.backward_slices import MEMORY_OPCODES, find_access_slice
from gpu.timing.ptx.analysis.control_flow import END, NaturalLoop, find_loops, find_reconvergence_points
from gpu.timing.ptx.analysis.lane_dependence import find_lane_registers, find_loaded_registers
from gpu.timing.ptx.analysis.stored_links import follows_stored_links
from gpu.timing.ptx.analysis.tiles import TILE_ADDRESS, compute_tile_offsets
from gpu.timing.ptx.lanes import SampleLanes
from gpu.timing.ptx.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS, SampledMemory
from gpu.timing.ptx.operations import COMPARISONS, DTYPES, convert_value, find_operand_types, find_operation
from gpu.timing.ptx.path import PERIOD, RepeatedIterations, SampledPath, Visit
from gpu.timing.ptx.program import PtxInstruction, PtxKernel, find_registers, lay_out_variables
from gpu.timing.ptx.sampled_blocks import (
    SPECIAL_REGISTERS,
    BlockMemory,
    GridShape,
    LoopState,
    SampledAccess,
    SampledBlocks,
)
from gpu.timing.ptx.thread_operations import has_thread_operations
from gpu.timing.ptx.values import parse_constant, reinterpret_value, select_lanes, widen_value

Array = npt.NDArray[Any]
Value = Any
Step = Callable[[SampledBlocks, SampleLanes], None]

_MAXIMUM_VISITS = 40_000
_MAXIMUM_LANE_VISITS = 1 << 31
"""Limits of a path: the most basic blocks to visit, and the same times the lanes; the rest of the path is omitted."""
_EXECUTED_ITERATIONS = 10
"""Iterations of a loop to execute before skipping: their differences predict the following ones."""
_FINAL_ITERATIONS = 2
_MAXIMUM_DECLINING = 512
"""The iterations of a loop up to which none is skipped while lanes leave a part of it for good, as when each lane has
found what it searches for."""
_MAXIMUM_CHANGES = 4
"""The most distinct iterations at which a loop's comparisons change that are considered; with one per lane, no
iteration could be skipped."""
_VARYING_SHARE = 2
"""In a loop whose conditions depend on loaded values, the most iterations to skip at once, as a multiple of those
before: the latest iterations represent only as many."""
_LEAVING_SHARE, _MINIMUM_UNEVEN = 1 / 8, 4 * PERIOD
"""In a loop that lanes leave one after the other: the share that leaves at once, and the fewest iterations to skip."""
_BOX_LINE_BYTES = 128
"""Bytes of a row of a tensor map's box."""
_DEVICE_RUNTIME = "__cudaCDP2"
"""The prefix of functions of CUDA's device runtime: launches, streams."""
_CALLED_NAME = re.compile(r"(?<![\w$%])(?!retval|param)[A-Za-z_$][\w$]*")
_MAXIMUM_SPINS = 6
"""Iterations of a loop that waits for other blocks, after which the wait is considered complete: blocks that are not
sampled store nothing."""


def find_called_function(kernel: PtxKernel) -> str:
    """Return a function that a kernel calls, which `PtxMachine` cannot execute, in words; "" if there is none.

    Compilers call functions of their libraries that are too long to inline, and those with `__noinline__`. Functions of
    CUDA's device runtime do not count.
    """
    calls = (each for each in kernel.instructions if each.opcode == "call")
    names = (name for call in calls for operand in call.operands for name in _CALLED_NAME.findall(operand))
    called = next((name for name in names if not name.startswith(_DEVICE_RUNTIME)), "")
    is_pointer = called.startswith("prototype_")  # the called function's type
    return "a function through a pointer" if is_pointer else f"the function {called}" if called else ""


class PtxMachine:
    """A kernel that is prepared for execution of some blocks.

    Parameters
    ----------
    kernel : PtxKernel
    addresses : mapping of str to int
        The addresses of the file's variables in "global" and "const" memory.
    values : bool
        Whether to compute and store all values, even those that determine neither control flow nor addresses.
    """

    always_executed: tuple[str, ...] = (*MEMORY_OPCODES, "bar", "barrier")
    """Opcodes that are executed even if their values are not needed."""

    counts_guarded_lanes: bool = True
    """Whether to count the lanes of arithmetic operations with a predicate."""

    def __init__(self, kernel: PtxKernel, addresses: Mapping[str, np.int64], *, values: bool = True) -> None:
        self.kernel = kernel
        self._required_instructions = None if values else self.find_required_instructions(kernel)
        self.addresses = addresses
        self._parameter_offsets = {parameter.name: parameter.offset for parameter in kernel.parameters}
        self._reconvergence_points = find_reconvergence_points(kernel.blocks)
        self.loops = find_loops(kernel.blocks)
        self._local_offsets, self._local_bytes = lay_out_variables(
            [variable for variable in kernel.variables if variable.space == "local"]
        )
        self._shared_offsets, self._shared_bytes = lay_out_variables(kernel.shared_variables)
        self._private_registers = _find_private_registers(kernel)
        self._read_registers = {name for each in kernel.instructions for name in each.read_registers}
        self._lane_registers = find_lane_registers(kernel)
        own_blocks = {loop: _find_own_blocks(loop, self.loops.values()) for loop in self.loops.values()}
        self._conditional_loops = {
            loop: blocks
            for loop, blocks in own_blocks.items()
            if len(blocks) > 1 or _has_guarded_access(kernel, blocks)
        }
        self._varying_loops = {
            loop for loop, blocks in self._conditional_loops.items() if _depends_on_loaded_values(kernel, loop, blocks)
        }
        self._accumulators = {loop: find_accumulators(kernel, loop) for loop in self.loops.values()}
        self._link_loops = {loop for loop in self.loops.values() if follows_stored_links(kernel, loop)}
        self._spin_loops = {loop for loop in self.loops.values() if _is_spin_loop(kernel, loop)}
        self._code = [
            [
                code
                for index, instruction in enumerate(block.instructions)
                if (code := self._compile(instruction, index)) is not None
            ]
            for block in kernel.blocks
        ]

    @property
    def has_spin_loops(self) -> bool:
        """Whether the kernel has loops that wait until another block has stored a value."""
        return bool(self._spin_loops)

    @property
    def has_link_loops(self) -> bool:
        """Whether the kernel has loops that become shorter because all blocks store."""
        return bool(self._link_loops)

    @staticmethod
    def find_required_instructions(kernel: PtxKernel) -> set[PtxInstruction]:
        """Return the instructions to execute."""
        return find_access_slice(kernel)

    def run(
        self,
        shape: GridShape,
        parameters: Array,
        blocks: Sequence[int],
        memory: SampledMemory,
        companions: Sequence[int] = (),
    ) -> SampledPath:
        """Execute some blocks of a launch together.

        Parameters
        ----------
        shape : GridShape
        parameters : array
            The bytes of the kernel's parameters.
        blocks : sequence of int
            The blocks' numbers in the grid.
        memory : SampledMemory
            The memory that they load from and store to.
        companions : sequence of int
            Blocks that execute beside them without a path, for what they store.
        """
        block_memory = BlockMemory(self.kernel.shared_bytes, self._local_bytes)
        run = SampledBlocks(block_memory, shape, parameters, blocks, memory, companions)
        with np.errstate(all="ignore"):
            self.execute_path(run, min(_MAXIMUM_VISITS, _MAXIMUM_LANE_VISITS // run.lanes))
        return run.path

    def execute_path(self, run: SampledBlocks, max_visits: int) -> None:
        """Execute lanes along their paths; lanes that diverge wait for each other at the reconvergence point."""
        frames: list[_ReconvergencePoint] = [_ReconvergencePoint(END)]
        block_number, mask = 0, run.all_lanes
        live: SampleLanes | None = mask
        visits = 0
        while True:
            frame = frames[-1]
            if live is None or block_number == frame.place:
                frame.arrived = union_masks(frame.arrived, live)
                if frame.pending:
                    block_number, live = frame.pending.pop()
                    continue
                frames.pop()
                if not frames:
                    return
                block_number, live = frame.place, frame.arrived
                continue
            visits += 1
            if visits > max_visits:
                run.path.completed = False
                self._repeat_latest_iterations(run, block_number)
                return
            taken, other = self._execute_block(run, block_number, live)
            follows = self.kernel.blocks[block_number].successors
            last = (
                self.kernel.blocks[block_number].instructions[-1]
                if self.kernel.blocks[block_number].instructions
                else None
            )
            if last is None or not last.ends_block:
                block_number = follows[0] if follows else END
                continue
            if last.opcode != "bra":
                run.record_return(taken)
                live = other
                block_number = follows[-1] if follows else END
                continue
            target = follows[0]
            fallthrough = follows[-1] if last.guard else target
            if taken is not None and target <= block_number:
                taken, other = self.skip_loop_iterations(run, block_number, target, taken, other)
            elif target <= block_number:
                run.loops.pop(self.loops[block_number, target], None)  # a later entry of the loop starts a new count
            if other is None:
                block_number, live = target, taken
            elif taken is None:
                block_number, live = fallthrough, other
            else:
                join = self._reconvergence_points[block_number]
                if join != frame.place:
                    frame = _ReconvergencePoint(join)
                    frames.append(frame)
                # On an H200 and an H100, lanes that jump forward wait for the others; lanes that jump back do not.
                first, later = (target, taken), (fallthrough, other)
                if target > block_number:
                    first, later = later, first
                frame.pending.append(later)
                block_number, live = first

    def _execute_block(
        self, run: SampledBlocks, block_number: int, mask: SampleLanes
    ) -> tuple[SampleLanes | None, SampleLanes | None]:
        """Execute a basic block; return the lanes that take its jump, and the others."""
        run.requests, run.guarded_lanes = [], []
        jump: tuple[SampleLanes | None, SampleLanes | None] = (mask, None)
        for code in self._code[block_number]:
            lanes = code(run, mask)
            if lanes is not None:
                jump = lanes
        indices = tuple(index for index, _ in run.requests)
        run.path.steps.append(
            Visit(
                block_number,
                run.count_recorded_lanes(mask),
                tuple(request for _, request in run.requests),
                indices,
                tuple(run.guarded_lanes),
            )
        )
        return jump

    # Loops.

    def skip_loop_iterations(
        self,
        run: SampledBlocks,
        last: int,
        header: int,
        repeating_lanes: SampleLanes,
        leaving_lanes: SampleLanes | None,
    ) -> tuple[SampleLanes | None, SampleLanes | None]:
        """Skip iterations that can be predicted; return the lanes that repeat the loop, and those that leave it.

        Parameters
        ----------
        run : SampledBlocks
        last, header : int
            The loop's back edge: the block of the jump, and its target.
        repeating_lanes : SampleLanes
            The lanes that take the jump.
        leaving_lanes : SampleLanes or None
            The lanes that leave the loop in this iteration.
        """
        loop = self.loops[last, header]
        if loop in self._link_loops:
            return repeating_lanes, leaving_lanes
        state = run.loops.get(loop)
        if state is None or not np.array_equal(state.mask.bits, repeating_lanes.bits):
            kept = state is not None and loop not in self._spin_loops and repeating_lanes.is_in(state.mask)
            # The remaining lanes continue the earlier iterations.
            earlier = (state.starts, state.registers) if state is not None and kept else ([], [])
            passed, entered = (
                (state.passed + state.iterations, state.entered)
                if state is not None and kept
                else (0, repeating_lanes.count)
            )
            state = run.loops[loop] = LoopState(repeating_lanes, 0, *earlier, passed=passed, entered=entered)
        state.iterations += 1
        if state.iterations > _MAXIMUM_SPINS and (loop in self._spin_loops or _is_waiting(run, loop, state)):
            del run.loops[loop]
            return None, union_masks(repeating_lanes, leaving_lanes)
        state.starts.append(len(run.path.steps))
        state.registers.append({name: run.registers[name] for name in loop.written_registers if name in run.registers})
        del state.registers[: -PERIOD - 1]
        del state.starts[: -PERIOD - 1]
        if not loop.has_single_exit:
            return repeating_lanes, leaving_lanes
        self._note_iteration(run, loop, state)
        if state.latest_decline is not None and state.iterations < state.latest_decline + _EXECUTED_ITERATIONS:
            return repeating_lanes, leaving_lanes
        if leaving_lanes is None and state.iterations >= _EXECUTED_ITERATIONS and not state.iterations % 2:
            remaining = self._predict_common_iterations(run, loop, state)
            if remaining > _FINAL_ITERATIONS + PERIOD:
                remaining = min(remaining, self._predict_uniform_iterations(run, loop, state))
            skipped = (remaining - _FINAL_ITERATIONS) // PERIOD * PERIOD
            passed, final = state.passed + state.iterations, skipped - remaining
            if loop in self._varying_loops and skipped > (limit := _VARYING_SHARE * passed // PERIOD * PERIOD):
                skipped, final = limit, 0
            if skipped > 0:
                self._record_skipped_iterations(run, loop, state, skipped, np.int64(skipped))
                run.loops[loop] = LoopState(
                    state.mask, iterations=final, passed=passed + skipped - final, entered=state.entered
                )
                return repeating_lanes, leaving_lanes
        if len(state.starts) > PERIOD and state.iterations < _EXECUTED_ITERATIONS:
            self._skip_uneven_iterations(run, loop, state)
        return repeating_lanes, leaving_lanes

    def _repeat_latest_iterations(self, run: SampledBlocks, place: int) -> None:
        """Repeat the latest iterations of the loop in which a path is too long: lanes leave it at loaded values.

        A search ends in the middle of what its bound leaves, on average; earlier, if lanes have left more often so far.
        """
        loops = [loop for loop, state in run.loops.items() if place in loop.blocks and len(state.starts) > PERIOD]
        if not loops:
            return
        loop = max(loops, key=lambda each: run.loops[each].starts[-1])
        state = run.loops[loop]
        rounds = self.predict_iterations(run, loop, state)
        if rounds is None:
            return
        lanes = state.mask.count
        per_departure = (state.passed + state.iterations) * lanes / max(state.entered - lanes, 1)
        times = int(min(float(rounds.mean()) / 2, per_departure)) // PERIOD
        if times > 0:
            steps = run.path.steps[state.starts[-PERIOD - 1] : state.starts[-1]]
            run.path.steps.append(RepeatedIterations(times, tuple(steps)))

    def _note_iteration(self, run: SampledBlocks, loop: NaturalLoop, state: LoopState) -> None:
        """Note which lanes executed the conditional parts of a loop: skipped iterations repeat the latest ones."""
        blocks = self._conditional_loops.get(loop)
        if blocks is None or len(state.starts) < 2 or state.iterations > _MAXIMUM_DECLINING:
            return
        lanes: dict[tuple[int, int], Array] = defaultdict(lambda: np.zeros(1, np.int64))
        for step in run.path.steps[state.starts[-2] :]:
            if not isinstance(step, Visit) or step.block not in blocks:
                continue
            lanes[step.block, -1] = lanes[step.block, -1] + step.lanes.astype(np.int64)
            for index, request in zip(step.instruction_indices, step.requests, strict=True):
                if self.kernel.blocks[step.block].instructions[index].guard:
                    spread = np.zeros(step.lanes.size, np.int64)
                    spread[request.warps] = request.lanes
                    lanes[step.block, index] = lanes[step.block, index] + spread
        state.note_lanes(lanes)

    def _skip_uneven_iterations(self, run: SampledBlocks, loop: NaturalLoop, state: LoopState) -> None:
        """Skip iterations of a long loop that lanes leave one after the other: let those that leave next leave at once.

        They execute the mean of their iterations, so that the lanes' executions remain the same in all.
        """
        rounds = self.predict_iterations(run, loop, state)
        earlier, lanes = run.path.steps[state.starts[0]], state.mask.lanes_per_warp
        if rounds is None or not rounds.ndim or not isinstance(earlier, Visit):
            return
        place = int(_LEAVING_SHARE * rounds.size)
        leaves = rounds <= np.partition(rounds, place)[place]
        mean = int(rounds[leaves].mean())
        skipped = (mean - _FINAL_ITERATIONS) // PERIOD * PERIOD
        # Lanes that have left in the last iterations would repeat these, too.
        left = earlier.lanes.sum(dtype=np.int64) - state.mask.count
        if 2 * left > _LEAVING_SHARE * rounds.size or not np.array_equal(earlier.lanes > 0, lanes > 0):
            return
        if skipped < _MINIMUM_UNEVEN or self._predict_uniform_iterations(run, loop, state) < skipped:
            return
        iterations = np.zeros(run.lanes, np.int64)
        iterations[state.mask.bits] = np.where(leaves, np.maximum(rounds - mean + skipped, 0), skipped)
        self._record_skipped_iterations(run, loop, state, skipped, iterations)
        run.loops[loop] = LoopState(state.mask)

    def _predict_common_iterations(self, run: SampledBlocks, loop: NaturalLoop, state: LoopState) -> int:
        """Return the number of iterations that all lanes still execute, as predicted from registers."""
        rounds = self.predict_iterations(run, loop, state)
        return 0 if rounds is None else int(np.min(rounds))

    def predict_iterations(self, run: SampledBlocks, loop: NaturalLoop, state: LoopState) -> Array | None:
        """Return the remaining iterations, per lane or one number for all; None if registers do not predict them."""
        block = self.kernel.blocks[loop.last]
        jump = block.instructions[-1]
        negated, guard = jump.negated, jump.guard
        comparison_instruction = None
        for instruction in reversed(block.instructions[:-1]):
            if guard in instruction.written_registers:
                if instruction.opcode == "not":
                    guard, negated = instruction.operands[1], not negated
                    continue
                comparison_instruction = instruction
                break
        if (
            comparison_instruction is None
            or comparison_instruction.opcode != "setp"
            or len(comparison_instruction.operands) != 3
        ):
            return None
        linear = self._compute_distance(run, loop, state, comparison_instruction)
        if linear is None:
            return None
        distance, change = linear
        comparison = comparison_instruction.modifiers[0]
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

    def _predict_uniform_iterations(self, run: SampledBlocks, loop: NaturalLoop, state: LoopState) -> int:
        """Return for how many iterations all predictable comparisons of a loop have the same results."""
        changes: set[int] = set()
        for number in loop.blocks:
            for instruction in self.kernel.blocks[number].instructions:
                if instruction.opcode != "setp" or len(instruction.operands) != 3 or "|" in instruction.operands[0]:
                    continue
                linear = self._compute_distance(run, loop, state, instruction)
                if linear is None:
                    continue
                distance, change = linear
                # The iteration at which both sides become equal: "less" changes there, or one iteration later.
                iterations_away = np.ceil(-distance / np.where(change == 0, 1, change))
                near = iterations_away[(change != 0) & (iterations_away >= -PERIOD)]
                changes.update(np.unique(near).astype(np.int64).tolist()[: _MAXIMUM_CHANGES + 1])
        if not changes or len(changes) > _MAXIMUM_CHANGES:
            return 1 << 62
        return max(min(changes), 0)

    def _compute_distance(
        self, run: SampledBlocks, loop: NaturalLoop, state: LoopState, comparison: PtxInstruction
    ) -> tuple[Array, Array] | None:
        """Return the difference of a comparison's sides, and its change per iteration; None if unknown."""
        dtype = DTYPES[comparison.type]
        if dtype.kind not in "iu":
            return None
        if dtype.kind == "u":
            dtype = np.dtype(f"i{dtype.itemsize}")  # negative values may rise to 0, as at an image's upper edge
        sides = []
        for operand in comparison.operands[1:]:
            if not operand.startswith("%"):
                sides.append((int(parse_constant(operand, dtype)), 0))
                continue
            value = self._to_integers(run.registers.get(operand), dtype, state.mask)
            step = self._find_register_step(operand, dtype, state) if operand in loop.written_registers else 0
            if step is None or value is None:
                return None
            sides.append((value, step))
        (a, da), (b, db) = sides
        return np.asarray(a) - np.asarray(b), np.asarray(da) - np.asarray(db)

    def _find_register_step(self, name: str, dtype: np.dtype[Any], state: LoopState) -> Any:
        """Return a register's change per iteration; None if it differed in the last iterations."""
        values = [self._to_integers(register.get(name), dtype, state.mask) for register in state.registers[-3:]]
        if len(values) < 3 or any(value is None for value in values):
            return None
        first, second = values[1] - values[0], values[2] - values[1]
        return second if np.array_equal(first, second) else None

    @staticmethod
    def _to_integers(value: Value, dtype: np.dtype[Any], mask: SampleLanes) -> Any:
        if value is None or value.dtype.itemsize != dtype.itemsize:
            return None
        integers = value.view(dtype)
        integers = integers[mask.bits] if integers.ndim else integers
        return integers.astype(np.int64)

    def _record_skipped_iterations(
        self, run: SampledBlocks, loop: NaturalLoop, state: LoopState, skipped: int, iterations: Value
    ) -> None:
        """Skip iterations: advance each register that changes linearly, and sums, by the lanes' iterations."""
        start = state.starts[-PERIOD - 1]
        run.path.steps.append(RepeatedIterations(skipped // PERIOD, tuple(run.path.steps[start:])))
        earliest, passed = state.registers[0], len(state.registers) - 1
        for name in loop.written_registers:
            values = [registers[name] for registers in state.registers[-3:] if name in registers]
            dtype = values[0].dtype if values else np.dtype(np.void)
            if len(values) < 3 or dtype.kind not in "iu" or any(each.dtype != dtype for each in values):
                continue
            older, old, latest = values
            first, second = old - older, latest - old
            if np.array_equal(select_lanes(first, state.mask), select_lanes(second, state.mask)):
                advanced = latest + second * iterations.astype(dtype)
            elif name in self._accumulators[loop] and name in earliest and earliest[name].dtype == dtype:
                change = (latest - earliest[name]).view(f"i{dtype.itemsize}")
                advanced = latest + (change * iterations // passed).astype(dtype)
            else:
                continue
            if advanced.ndim and name in run.registers and not run.covers_running_lanes(state.mask):
                advanced = np.where(state.mask.bits, advanced, run.registers[name])
            run.registers[name] = advanced

    # Instructions.

    def _is_required(self, instruction: PtxInstruction) -> bool:
        return self._required_instructions is None or instruction in self._required_instructions

    def _compile(self, instruction: PtxInstruction, index: int) -> Callable[[SampledBlocks, SampleLanes], Any] | None:
        """Return a function that executes an instruction; for a jump, it returns the lanes that take it and the others.

        Return None for an instruction that only computes a value that is not required.
        """
        run = self._compile_unguarded(instruction, index)
        always = instruction.opcode in self.always_executed and "param" not in instruction.modifiers
        is_required = instruction.ends_block or always or self._is_required(instruction)
        guard, negated = instruction.guard, instruction.negated
        is_counted = bool(guard) and self.counts_guarded_lanes and has_thread_operations(instruction)
        if not (is_required or is_counted):
            return None
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
            if chosen is None:
                chosen_lanes = np.zeros_like(state.count_recorded_lanes(mask))
            else:
                chosen_lanes = state.count_recorded_lanes(chosen)
                if is_required:
                    run(state, chosen)
            if is_counted:
                state.guarded_lanes.append((index, chosen_lanes))

        return guarded

    def _compile_unguarded(self, instruction: PtxInstruction, index: int) -> Step:
        opcode, words = instruction.opcode, instruction.modifiers
        if opcode in ("ld", "ldu") and "param" in words:
            return self._compile_parameter_load(instruction)
        if opcode in self._ACCESS_COMPILERS:
            return self._ACCESS_COMPILERS[opcode](self, instruction, index)
        if opcode in ("bar", "barrier") and "red" in words:
            return self._compile_block_vote(instruction)
        if opcode in self._COMPILERS:
            return self._COMPILERS[opcode](self, instruction)
        if opcode in _IGNORED_OPCODES:
            return lambda state, mask: None
        if opcode == "call" and any(operand.startswith(_DEVICE_RUNTIME) for operand in instruction.operands):
            raise KernelError(
                f"{self.kernel.name} launches child kernels. Their number depends on all blocks, but the timing "
                "model executes only a few.",
                advice="Measure a kernel that launches kernels on a GPU, or simulate it.",
            )
        if opcode == "call":
            raise KernelError(
                f"{self.kernel.name} calls an external function, which the timing model does not support.",
                advice="The timing model does not support kernels that launch kernels, print or allocate.",
            )
        return self._compile_arithmetic(instruction)

    def _create_setter(self, name: str, *, partly: bool = False) -> Callable[[SampledBlocks, SampleLanes, Value], None]:
        """Return a function that sets a register in some lanes."""
        if name in ("_", ""):
            return lambda state, mask, value: None
        if name in self._private_registers and not partly:

            def replace(state: SampledBlocks, mask: SampleLanes, value: Value) -> None:
                state.registers[name] = value

            return replace

        def merge(state: SampledBlocks, mask: SampleLanes, value: Value) -> None:
            previous = state.registers.get(name)
            if previous is None or state.covers_running_lanes(mask):
                state.registers[name] = value
                return
            if previous.dtype != value.dtype:
                previous = (
                    previous.view(value.dtype) if previous.itemsize == value.itemsize else previous.astype(value.dtype)
                )
            state.registers[name] = np.where(mask.bits, value, previous)

        return merge

    def _create_getter(self, operand: str, type: str) -> Callable[[SampledBlocks], Value]:
        """Return a function that reads an operand as a type."""
        dtype = DTYPES[type]
        if operand.startswith("%") and operand[1:].partition(".")[0] in SPECIAL_REGISTERS:
            name = operand[1:]
            return lambda state: reinterpret_value(state.read_special_register(name), dtype)
        if operand.startswith("%") or (re.fullmatch(r"[a-z]\w*", operand) and operand in self.kernel.register_widths):
            name, undefined = operand, dtype.type(0)  # the compiler also reads registers that it never writes

            def register(state: SampledBlocks) -> Value:
                value = state.registers.get(name, undefined)
                return value if value.dtype == dtype else reinterpret_value(value, dtype)

            return register
        if re.fullmatch(r"[A-Za-z_$][\w$]*", operand):
            return self._create_address_getter(operand, dtype)
        if operand == "WARP_SZ":
            operand = "32"
        constant = parse_constant(operand, dtype)
        return lambda state: constant

    def _create_address_getter(self, name: str, dtype: np.dtype[Any]) -> Callable[[SampledBlocks], Value]:
        address: Any
        if name in self._shared_offsets:
            address = self._shared_offsets[name]
        elif name in self._local_offsets:
            address = self._local_offsets[name]
        elif name in self.addresses:
            address = int(self.addresses[name])
        elif name in self._parameter_offsets:
            address = self._parameter_offsets[name]
        else:
            address = self._shared_bytes  # an extern array follows the others
            address = -(-address // 16) * 16
        value = np.int64(address).astype(dtype)
        return lambda state: value

    def _compile_arithmetic(self, instruction: PtxInstruction) -> Step:
        compute = find_operation(instruction.opcode, instruction.modifiers)
        operands = instruction.operands[1:]
        types = find_operand_types(instruction.opcode, instruction.modifiers, instruction.type, len(operands))
        read = [self._create_getter(operand, type) for operand, type in zip(operands, types, strict=True)]
        put = self._create_setter(instruction.operands[0].partition("|")[0], partly=bool(instruction.guard))
        if len(read) == 1:
            one = read[0]
            return lambda state, mask: put(state, mask, compute(one(state)))
        if len(read) == 2:
            first, second = read
            return lambda state, mask: put(state, mask, compute(first(state), second(state)))
        return lambda state, mask: put(state, mask, compute(*(each(state) for each in read)))

    def _compile_move(self, instruction: PtxInstruction) -> Step:
        target, source = instruction.operands
        if target.startswith("{"):
            return self._compile_unpack(instruction, _split_list(target), source)
        if source.startswith("{"):
            return self._compile_pack(instruction, target, _split_list(source))
        get, put = (
            self._create_getter(source, instruction.type),
            self._create_setter(target, partly=bool(instruction.guard)),
        )
        return lambda state, mask: put(state, mask, get(state))

    def _compile_unpack(self, instruction: PtxInstruction, targets: list[str], source: str) -> Step:
        get = self._create_getter(source, instruction.type)
        puts = [self._create_setter(name, partly=bool(instruction.guard)) for name in targets]
        bits = DTYPES[instruction.type].itemsize * 8 // len(targets)
        part = DTYPES[f"b{bits}"]

        def unpack(state: SampledBlocks, mask: SampleLanes) -> None:
            value = reinterpret_value(get(state), DTYPES[f"b{bits * len(targets)}"])
            for number, put in enumerate(puts):
                put(state, mask, (value >> value.dtype.type(bits * number)).astype(part))

        return unpack

    def _compile_pack(self, instruction: PtxInstruction, target: str, sources: list[str]) -> Step:
        dtype = DTYPES[instruction.type]
        bits = dtype.itemsize * 8 // len(sources)
        parts = [self._create_getter(name, f"b{bits}") for name in sources]
        put = self._create_setter(target, partly=bool(instruction.guard))

        def pack(state: SampledBlocks, mask: SampleLanes) -> None:
            value = parts[0](state).astype(dtype)
            for number, part in enumerate(parts[1:], start=1):
                value = value | (part(state).astype(dtype) << dtype.type(bits * number))
            put(state, mask, value)

        return pack

    def _compile_compare(self, instruction: PtxInstruction) -> Step:
        compare = COMPARISONS[instruction.modifiers[0]]
        first, second = (self._create_getter(operand, instruction.type) for operand in instruction.operands[1:3])
        names = instruction.operands[0].split("|")
        puts = [self._create_setter(name.strip(), partly=bool(instruction.guard)) for name in names]
        combination = next((word for word in instruction.modifiers[1:] if word in ("and", "or", "xor")), "")
        third = self._create_getter(instruction.operands[3].lstrip("!"), "pred") if combination else None
        inverted = combination and instruction.operands[3].startswith("!")

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            holds = np.asarray(compare(first(state), second(state)))
            if third is not None:
                other = third(state)
                other = ~other if inverted else other
                holds = (
                    holds & other if combination == "and" else holds | other if combination == "or" else holds ^ other
                )
            puts[0](state, mask, holds)
            if len(puts) > 1:
                puts[1](state, mask, ~holds)

        return run

    def _compile_select(self, instruction: PtxInstruction) -> Step:
        first, second = (self._create_getter(operand, instruction.type) for operand in instruction.operands[1:3])
        condition = self._create_getter(instruction.operands[3], "pred" if instruction.opcode == "selp" else "s32")
        put = self._create_setter(instruction.operands[0], partly=bool(instruction.guard))
        signed = instruction.opcode == "slct"

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            chosen = condition(state)
            chosen = chosen >= 0 if signed else chosen
            put(state, mask, np.where(chosen, first(state), second(state)))

        return run

    def _compile_convert(self, instruction: PtxInstruction) -> Step:
        words = instruction.modifiers
        if "tf32" in words:
            return self._compile_tf32_conversion(instruction)
        if "f16x2" in words:
            return self._compile_half_pair_conversion(instruction)
        target_type, source_type = (word for word in words if re.fullmatch(r"[bsuf]\d+", word))
        get = self._create_getter(instruction.operands[1], source_type)
        put = self._create_setter(instruction.operands[0], partly=bool(instruction.guard))
        return lambda state, mask: put(state, mask, convert_value(get(state), words, target_type, source_type))

    def _compile_tf32_conversion(self, instruction: PtxInstruction) -> Step:
        get, put = self._create_getter(instruction.operands[1], "b32"), self._create_setter(instruction.operands[0])
        half, mantissa_mask = np.uint32(1 << 12), np.uint32(0xFFFFE000)
        return lambda state, mask: put(state, mask, (get(state) + half) & mantissa_mask)

    def _compile_half_pair_conversion(self, instruction: PtxInstruction) -> Step:
        high, low = (self._create_getter(operand, "f32") for operand in instruction.operands[1:3])
        put = self._create_setter(instruction.operands[0], partly=bool(instruction.guard))

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            bits = (get(state).astype(np.float16).view(np.uint16).astype(np.uint32) for get in (high, low))
            put(state, mask, next(bits) << np.uint32(16) | next(bits))

        return run

    def _compile_generic_address(self, instruction: PtxInstruction) -> Step:
        """Convert an address of a state space to a generic one, or back; global addresses are unchanged."""
        get = self._create_getter(instruction.operands[1], "s64")
        put = self._create_setter(instruction.operands[0], partly=bool(instruction.guard))
        window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(
            next((word for word in instruction.modifiers if word in ("shared", "local")), ""), 0
        )
        tag = np.int64(window << WINDOW_BITS)
        if "to" in instruction.modifiers:
            return lambda state, mask: put(state, mask, get(state) & ~tag if window else get(state))
        return lambda state, mask: put(state, mask, get(state) | tag)

    def _compile_space_test(self, instruction: PtxInstruction) -> Step:
        get, put = self._create_getter(instruction.operands[1], "s64"), self._create_setter(instruction.operands[0])
        window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(instruction.modifiers[0], 0)

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            windows = get(state) >> WINDOW_BITS
            put(state, mask, np.asarray(windows == window if window else windows > LOCAL_WINDOW))

        return run

    # Exchanges.

    def _compile_exchange(self, instruction: PtxInstruction) -> Step:
        opcode, words, operands = instruction.opcode, instruction.modifiers, instruction.operands
        names = [name.strip() for name in operands[0].split("|")]
        puts = [self._create_setter(name, partly=bool(instruction.guard)) for name in names]
        if opcode in ("activemask", "elect"):

            def active(state: SampledBlocks, mask: SampleLanes) -> None:
                puts[0](state, mask, exchanges.compute_vote("ballot", np.ones(state.lanes, np.bool_), mask))

            return active
        type = "pred" if opcode == "vote" else instruction.type
        inverted = opcode == "vote" and operands[1].startswith("!")
        get = self._create_getter(operands[1].lstrip("!"), type)
        if opcode == "shfl":
            mode = next(word for word in words if word in ("up", "down", "bfly", "idx"))
            delta, limits = self._create_getter(operands[2], "u32"), self._create_getter(operands[3], "u32")

            def shuffle(state: SampledBlocks, mask: SampleLanes) -> None:
                value, moved, bounds = (
                    exchanges.broadcast_to_lanes(each(state), state.lanes) for each in (get, delta, limits)
                )
                received, inside = exchanges.shuffle_values(mode, value, moved, bounds)
                puts[0](state, mask, received)
                if len(puts) > 1:
                    puts[1](state, mask, inside)

            return shuffle
        mode = next(word for word in words if word not in ("sync", "aligned"))

        def exchange(state: SampledBlocks, mask: SampleLanes) -> None:
            value = exchanges.broadcast_to_lanes(get(state), state.lanes)
            if opcode == "vote":
                puts[0](state, mask, exchanges.compute_vote(mode, ~value if inverted else value, mask))
            elif opcode == "match":
                puts[0](state, mask, exchanges.match_values(mode, value, mask))
            else:
                puts[0](state, mask, exchanges.reduce_values(mode, value, mask))

        return exchange

    def _compile_block_vote(self, instruction: PtxInstruction) -> Step:
        mode = next(word for word in instruction.modifiers if word in ("popc", "and", "or"))
        inverted = instruction.operands[-1].startswith("!")
        get, put = (
            self._create_getter(instruction.operands[-1].lstrip("!"), "pred"),
            self._create_setter(instruction.operands[0]),
        )

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            holds = exchanges.broadcast_to_lanes(get(state), state.lanes)
            rows = ((~holds if inverted else holds) & mask.bits).reshape(len(state.path.blocks), -1)
            active = mask.bits.reshape(rows.shape)
            threads_per_block = rows.shape[1]
            if mode == "popc":
                put(state, mask, np.repeat(rows.sum(axis=1).astype(np.uint32), threads_per_block))
            else:
                put(
                    state,
                    mask,
                    np.repeat((rows == active).all(axis=1) if mode == "and" else rows.any(axis=1), threads_per_block),
                )

        return run

    # Memory.

    def _compile_parameter_load(self, instruction: PtxInstruction) -> Step:
        """Load from the parameter buffer; the address of a struct's member may be in a register."""
        address = self._compile_address(instruction.operands[1])
        dtype = DTYPES[instruction.type]
        puts = [
            self._create_setter(each, partly=bool(instruction.guard)) for each in _split_list(instruction.operands[0])
        ]

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            data = state.parameters[: state.parameters.size // dtype.itemsize * dtype.itemsize].view(dtype)
            first = np.asarray(address(state)) // dtype.itemsize
            for number, put in enumerate(puts):
                put(state, mask, data.take(first + number, mode="clip")[()])

        return run

    def _compile_tile_address(self, instruction: PtxInstruction) -> Step:
        """Compute the address of each lane's word of a tile."""
        base, stride = (
            self._compile_address(instruction.operands[1]),
            self._create_getter(instruction.operands[2] or "0", "s32"),
        )
        put = self._create_setter(instruction.operands[0], partly=bool(instruction.guard))

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            row_stride = np.asarray(stride(state)).astype(np.int64)
            lane = state.read_special_register("laneid").astype(np.int64)
            put(
                state,
                mask,
                (base(state) + compute_tile_offsets(instruction.modifiers, row_stride, lane)).astype(np.uint64),
            )

        return run

    def _compile_product(self, instruction: PtxInstruction) -> Step:
        """Execute a tile product without computing its values."""
        if self._is_required(instruction):
            raise KernelError(
                f"In {self.kernel.name}, tile products determine branches or addresses, which the timing model "
                "does not support."
            )
        return lambda state, mask: None

    def _compile_address(self, operand: str) -> Callable[[SampledBlocks], Value]:
        """Return a function that computes an address in brackets."""
        inner = operand.strip("[]").strip()
        match = re.fullmatch(r"([%\w$]+)\s*(?:\+\s*(-?\w+))?", inner)
        if match is None:
            raise KernelError(f"Cannot parse the address {operand!r} in the compiler's PTX.")
        offset = np.int64(int(match[2], 0) if match[2] else 0)
        base = match[1]
        if re.fullmatch(r"-?\d+", base):
            constant = np.int64(int(base)) + offset
            return lambda state: constant
        if base.startswith("%") or base in self.kernel.register_widths:
            width = self._register_width(base)
            if width == 4:

                def narrow(state: SampledBlocks) -> Value:
                    return reinterpret_value(state.registers[base], DTYPES["u32"]).astype(np.int64) + offset

                return narrow
        get = self._create_getter(base, "s64")
        return lambda state: get(state) + offset

    def _is_read(self, register: str) -> bool:
        return register in self._read_registers

    def _register_width(self, register: str) -> int:
        prefix = re.sub(r"\d+$", "", register)
        return self.kernel.register_widths.get(register, self.kernel.register_widths.get(prefix, 8))

    def _compile_memory_operand(
        self, instruction: PtxInstruction, operand: str
    ) -> tuple[Callable[[SampledBlocks], Value], str, np.dtype[Any], int]:
        space = next(
            (word for word in instruction.modifiers if word in ("global", "shared", "local", "const")), "generic"
        )
        count = next((int(word[1:]) for word in instruction.modifiers if word in ("v2", "v4", "v8")), 1)
        return self._compile_address(operand), space, DTYPES[instruction.type], count

    def _compile_load(self, instruction: PtxInstruction, index: int) -> Step:
        address, space, dtype, count = self._compile_memory_operand(instruction, instruction.operands[1])
        names = _split_list(instruction.operands[0])
        puts = [self._create_setter(name, partly=bool(instruction.guard)) for name in names]
        widths = [self._register_width(name) for name in names]
        bypasses_cache = not {"volatile", "relaxed", "acquire"}.isdisjoint(instruction.modifiers)
        operation = "ld.volatile" if bypasses_cache else "ld"
        decides = self._is_required(instruction)

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            access = state.resolve(space, address(state), mask)
            state.record_request(index, access, operation, dtype.itemsize * count)
            if not decides:
                return
            values = state.load(access, dtype, count)
            for value, put, width in zip(values, puts, widths, strict=True):
                put(state, mask, widen_value(value, width))

        return run

    def _compile_store(self, instruction: PtxInstruction, index: int) -> Step:
        address, space, dtype, count = self._compile_memory_operand(instruction, instruction.operands[0])
        names = _split_list(instruction.operands[1])
        stored = f"b{8 * dtype.itemsize}"
        decides = self._is_required(instruction)
        gets = []
        for name in names:
            width = self._register_width(name) if name[:1] == "%" else dtype.itemsize
            gets.append(self._create_getter(name, instruction.type if width == dtype.itemsize else f"b{8 * width}"))

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            access = state.resolve(space, address(state), mask)
            state.record_request(index, access, "st", dtype.itemsize * count)
            if not decides:
                return
            values = [reinterpret_value(get(state), DTYPES[stored]) for get in gets]
            state.store(access, values, DTYPES[stored])

        return run

    def _compile_matrix_load(self, instruction: PtxInstruction, index: int) -> Step:
        """Record the requests for rows of 8 x 8 matrices of halves, without loading values."""
        address = self._compile_address(instruction.operands[1])
        puts = [self._create_setter(name) for name in _split_list(instruction.operands[0])]

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            state.record_request(index, SampledAccess("shared", address(state), mask), "ld", 4 * len(puts))
            for put in puts:
                put(state, mask, np.uint32(0))

        return run

    def _compile_copy(self, instruction: PtxInstruction, index: int) -> Step:
        """Record an asynchronous copy to shared memory, for which no lane waits: copies are issued early enough."""
        if "bulk" in instruction.modifiers:
            return self._compile_bulk_copy(instruction, index)
        if "shared" not in instruction.modifiers:  # commit or wait of a group
            return lambda state, mask: None
        address, size = self._compile_address(instruction.operands[1]), int(instruction.operands[2])
        copied_bytes = self._create_getter(instruction.operands[3], "u32") if len(instruction.operands) > 3 else None

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            chosen: SampleLanes | None = mask
            if copied_bytes is not None:
                chosen = mask.split(copied_bytes(state) > 0)[0]
            if chosen is not None:
                state.record_request(index, SampledAccess("global", address(state), chosen), "ld", size)

        return run

    def _compile_bulk_copy(self, instruction: PtxInstruction, index: int) -> Step:
        """Record a bulk copy to shared memory, for which no lane waits: copies are issued early enough."""
        words = instruction.modifiers
        if "commit_group" in words or "wait_group" in words:
            return lambda state, mask: None
        if words[2:5:2] == ("tensor", "shared::cluster"):
            return self._compile_tensor_copy(instruction, index)
        if words[2] not in ("shared::cluster", "shared::cta") or words[3] != "global":
            raise KernelError("The timing model supports bulk copies from global to shared memory only.")
        address, size = (
            self._compile_address(instruction.operands[1]),
            self._create_getter(instruction.operands[2], "u32"),
        )
        return lambda state, mask: state.record_bulk_copy(index, address(state), size(state), mask)

    def _compile_tensor_copy(self, instruction: PtxInstruction, index: int) -> Step:
        """Record the rows of a box that a tensor map in the kernel's parameters, or the operands, describe."""
        if "rows" in instruction.modifiers:
            matrix = self._compile_address(instruction.operands[1])
            getters = [self._create_getter(operand, "s64") for operand in instruction.operands[2:]]

            def run_with_numbers(state: SampledBlocks, mask: SampleLanes) -> None:
                numbers = [np.reshape(get(state), (-1, 1)).astype(np.int64) for get in getters]
                _record_box(state, mask, index, np.reshape(matrix(state), (-1, 1)), numbers)

            return run_with_numbers
        operands = [word.strip("[]{} ") for word in instruction.operands[1].split(",")]
        if "2d" not in instruction.modifiers or len(operands) != 3:
            raise KernelError("The timing model supports bulk tensor copies of two dimensions only.")
        parameter = self._create_getter(operands[0], "s64")
        column, row = (self._create_getter(operand, "s32") for operand in operands[1:])

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            start = int(np.broadcast_to(parameter(state), mask.bits.size)[mask.lanes[0]])
            words = state.parameters[start : start + 48].view(np.int64)
            address, rows, row_bytes, pitch, element_bytes, box_rows = words.tolist()
            first = np.reshape(column(state), (-1, 1)).astype(np.int64) * element_bytes
            first_row = np.reshape(row(state), (-1, 1)).astype(np.int64)
            _record_box(state, mask, index, address, (rows, row_bytes, pitch, first, first_row, box_rows))

        return run

    def _compile_memory_barrier(self, instruction: PtxInstruction) -> Step:
        """Treat each phase that is waited for as complete."""
        if not instruction.written_registers:
            return lambda state, mask: None
        put, value = self._create_setter(instruction.written_registers[0]), "wait" in instruction.modifiers[0]
        return lambda state, mask: put(state, mask, np.bool_(True) if value else np.uint64(0))

    def _compile_texture_fetch(self, instruction: PtxInstruction, request_index: int) -> Step:
        texture, _, locations = instruction.operands[1].strip("[]").partition(",")
        names = _split_list(locations.strip())
        if len(names) != 1 or "1d" not in instruction.modifiers:
            raise KernelError("The timing model supports only one-dimensional textures.")
        base, index = self._create_getter(texture.strip(), "s64"), self._create_getter(names[0], "s32")
        puts = [self._create_setter(name) for name in _split_list(instruction.operands[0])]
        decides = self._is_required(instruction)

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            size = 1  # bytes per element: textures over linear memory have byte elements here
            addresses = base(state) + index(state).astype(np.int64) * size
            access = SampledAccess("global", addresses, mask)
            state.record_request(request_index, access, "ld", size)
            if not decides:
                return
            (value,) = state.load(access, DTYPES["u8"], 1)
            puts[0](state, mask, value.astype(np.uint32))
            for put in puts[1:]:
                put(state, mask, np.uint32(0))

        return run

    def _compile_atomic(self, instruction: PtxInstruction, index: int) -> Step:
        returns = instruction.opcode == "atom" and instruction.operands[0] not in ("_",)
        operands = instruction.operands[1:] if instruction.opcode == "atom" else instruction.operands
        address, space, dtype, _ = self._compile_memory_operand(instruction, operands[0])
        gets = [self._create_getter(operand, instruction.type) for operand in operands[1:]]
        put = self._create_setter(instruction.operands[0], partly=bool(instruction.guard)) if returns else None
        modes = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
        mode = next(word for word in instruction.modifiers if word in modes)
        kind_of = "atom" if returns else "red"
        decides = self._is_required(instruction)
        is_read, is_word = self._is_read(instruction.operands[0]), instruction.type[1:] == "32" and dtype.kind in "iu"
        counts_up = mode == "add" and operands[1] == "1" and not is_read
        is_equal_sum = mode == "add" and instruction.type in ("u32", "s32", "u64") and _is_constant(operands[1])
        is_reduced = is_word and mode in _REDUCED_MODES and not is_read
        is_scanned = is_word and mode == "add" and is_read
        has_one_address = self._lane_registers.isdisjoint(find_registers(operands[0]))

        def run(state: SampledBlocks, mask: SampleLanes) -> None:
            access = state.resolve(space, address(state), mask)
            # The hardware counts lanes on a word of shared memory. For an address that a warp's lanes share, the
            # assembler combines their operands; if they read the previous value, only sums, of equal values or of
            # complete warps.
            is_whole = is_equal_sum or (
                access.kind == "global" and (is_reduced or (is_scanned and mask.has_complete_warps))
            )
            combined = (is_whole and (has_one_address or not access.places.ndim)) or (
                counts_up and access.kind == "shared"
            )
            is_loop = instruction.is_shared_loop
            state.record_request(index, access, kind_of, dtype.itemsize, combined=combined, is_loop=is_loop)
            if not decides:
                return
            values = [get(state) for get in gets]
            old = state.atomic(access, mode, values, dtype, used=put is not None)
            if access.kind == "global" and mode in _REPLACING_MODES:
                state.record_replaced_word(access, dtype)
            if put is not None:
                put(state, mask, old)
                if access.kind == "global" and mode in ("add", "inc") and dtype.kind in "iu":
                    state.record_ticket(access, mode, values[0], dtype)

        return run

    _ACCESS_COMPILERS: ClassVar[Mapping[str, Callable[[PtxMachine, PtxInstruction, int], Step]]] = {
        "ld": _compile_load, "ldu": _compile_load, "st": _compile_store,
        "atom": _compile_atomic, "red": _compile_atomic, "tex": _compile_texture_fetch,
        "ldmatrix": _compile_matrix_load, "cp": _compile_copy,
    }  # fmt: skip
    _COMPILERS: ClassVar[Mapping[str, Callable[[PtxMachine, PtxInstruction], Step]]] = {
        "mov": _compile_move, "setp": _compile_compare, "cvt": _compile_convert,
        **dict.fromkeys(("selp", "slct"), _compile_select),
        **dict.fromkeys(("shfl", "vote", "match", "redux", "activemask", "elect"), _compile_exchange),
        TILE_ADDRESS: _compile_tile_address, "mbarrier": _compile_memory_barrier,
        **dict.fromkeys(("wmma", "mma", "wgmma"), _compile_product),
        "cvta": _compile_generic_address, "isspacep": _compile_space_test,
    }  # fmt: skip


_IGNORED_OPCODES = (
    "bar", "barrier", "membar", "fence", "nanosleep", "bra", "ret", "exit", "trap", "prefetch", "pragma", "discard",
    "griddepcontrol", "setmaxnreg", "applypriority",
)  # fmt: skip

_REDUCED_MODES = ("add", "min", "max", "and", "or", "xor")
"""Atomic operations whose operands the assembler combines, for 32-bit integers."""
_REPLACING_MODES = ("cas", "min", "max")
_NEGATED = {
    "lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq", "lo": "hs", "hs": "lo", "hi": "ls",
    "ls": "hi",
}  # fmt: skip


@dataclass
class _ReconvergencePoint:
    """A reconvergence point: its place, the lanes that have arrived, and those still to execute, with their places."""

    place: int
    pending: list[tuple[int, SampleLanes]] = field(default_factory=list)
    arrived: SampleLanes | None = None


def _split_list(operand: str) -> list[str]:
    return [name.strip() for name in operand.strip("{} ").split(",")]


def _is_constant(operand: str) -> bool:
    return re.fullmatch(r"-?\d+", operand) is not None


def _find_private_registers(kernel: PtxKernel) -> frozenset[str]:
    """Return the registers that are only read after their write in the same basic block."""
    written_first: set[str] = set()
    read_elsewhere: set[str] = set()
    for block in kernel.blocks:
        written: set[str] = set()
        for instruction in block.instructions:
            for name in instruction.read_registers:
                if name not in written:
                    read_elsewhere.add(name)
            if not instruction.guard:
                written.update(instruction.written_registers)
            else:
                read_elsewhere.update(instruction.written_registers)
        written_first |= written
    return frozenset(written_first - read_elsewhere)


def _find_own_blocks(loop: NaturalLoop, loops: Iterable[NaturalLoop]) -> frozenset[int]:
    """Return the basic blocks of a loop that are outside of its inner loops."""
    return loop.blocks.difference(*(other.blocks for other in loops if other.blocks < loop.blocks))


def _has_guarded_access(kernel: PtxKernel, blocks: Iterable[int]) -> bool:
    """Return whether an access to memory in some basic blocks has a predicate."""
    instructions = (instruction for number in blocks for instruction in kernel.blocks[number].instructions)
    return any(instruction.guard and instruction.opcode in MEMORY_OPCODES for instruction in instructions)


def _depends_on_loaded_values(kernel: PtxKernel, loop: NaturalLoop, blocks: Iterable[int]) -> bool:
    """Return whether values that a loop loads determine which lanes execute a part of some of its basic blocks."""
    loaded = find_loaded_registers(each for number in loop.blocks for each in kernel.blocks[number].instructions)
    return any(each.guard in loaded for number in blocks for each in kernel.blocks[number].instructions)


def _is_spin_loop(kernel: PtxKernel, loop: NaturalLoop) -> bool:
    """Return whether a loop only reads memory that other blocks write, and so waits for them."""
    reads_shared_state = False
    for number in loop.blocks:
        for instruction in kernel.blocks[number].instructions:
            if instruction.opcode == "st":
                return False
            reads_shared_state |= instruction.opcode == "ld" and any(
                w in instruction.modifiers for w in ("volatile", "acquire", "relaxed")
            )
            reads_shared_state |= instruction.opcode == "atom" and (
                any(word in instruction.modifiers for word in ("cas", "exch"))
                # An atomic operation that changes nothing is a load.
                or (any(word in instruction.modifiers for word in ("add", "or")) and instruction.operands[-1] == "0")
            )
    return reads_shared_state


def _is_waiting(run: SampledBlocks, loop: NaturalLoop, state: LoopState) -> bool:
    """Return whether a loop has the memory and registers of an earlier iteration: only other blocks can end it."""
    registers = {name: run.registers[name] for name in loop.written_registers if name in run.registers}
    if state.snapshot is not None:
        change_count, earlier = state.snapshot
        if change_count == run.change_count and all(
            name in earlier and _are_equal(select_lanes(value, state.mask), select_lanes(earlier[name], state.mask))
            for name, value in registers.items()
        ):
            return True
    if not state.iterations & (state.iterations - 1):  # finds cycles of any length, by Brent's algorithm
        state.snapshot = run.change_count, registers
    return False


def _are_equal(first: Value, second: Value) -> bool:
    """Return whether values are equal; NaN equals itself, as in registers that nothing has written."""
    return np.array_equal(first, second, equal_nan=True)


def _record_box(state: SampledBlocks, mask: SampleLanes, index: int, address: Value, numbers: Sequence[Value]) -> None:
    """Record the rows of a box; `numbers` are those of `ir.TensorCopy` without the last, each a column of lanes."""
    rows, row_bytes, pitch, first, first_row, box_rows = numbers
    places = first_row + np.arange(int(np.max(box_rows)))
    begin, end = np.maximum(first, 0), np.minimum(first + _BOX_LINE_BYTES, row_bytes)
    is_inside = (places >= 0) & (places < rows) & (places < first_row + box_rows)
    sizes = np.where(is_inside, np.maximum(end - begin, 0), 0)
    state.record_bulk_copy(index, address + places * pitch + begin, sizes, mask)
