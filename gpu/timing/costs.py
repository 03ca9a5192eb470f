"""Costs of PTX instructions on a multiprocessor: the machine instructions that they become, and their pipes.

PTX is not what a GPU executes: the driver's assembler folds addresses into loads, products into sums, and copies into
nothing. The costs of instructions that become several are those of its code for compute capabilities 8 and 9.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass

from gpu.base.warp import WARP
from gpu.timing.gpus import GpuDescription
from gpu.timing.ptx.analysis.lane_dependence import find_lane_registers
from gpu.timing.ptx.analysis.tiles import TILE_ADDRESS, element_of, shape_of
from gpu.timing.ptx.library_functions import LIBRARY_FUNCTION, get_function_cost
from gpu.timing.ptx.program import BasicBlock, PtxInstruction, PtxKernel

ALIAS, COMPUTE, MEMORY, BARRIER, JUMP = range(5)
"""Kinds of operations, as in `multiprocessor.cu`."""

FLOAT, INTEGER, DOUBLE, SPECIAL, EXCHANGE, LOAD_STORE, CONTROL, MATCH, TENSOR = range(9)
"""The pipes of a warp scheduler."""

PIPES = ("float", "integer", "double", "special", "exchange", "load/store", "control", "match", "tensor")


@dataclass(frozen=True)
class OperationCost:
    """The cost of an instruction for a warp.

    Parameters
    ----------
    kind : int
        One of ALIAS (no cost; forwards its operands), COMPUTE, MEMORY, BARRIER, JUMP.
    pipe : int
    slots : float
        Machine instructions, each of which takes an issue cycle of the scheduler.
    busy : float
        Cycles for which it occupies its pipe of one scheduler.
    latency : float
        Cycles until its result is available.
    blocked : float
        Cycles until the warp issues its next instruction, which depends on a branch; 0 if it depends on none.
    """

    kind: int
    pipe: int = CONTROL
    slots: float = 0.0
    busy: float = 0.0
    latency: float = 0.0
    blocked: float = 0.0


_FREE = OperationCost(ALIAS)

# For instructions that become several: machine instructions, those on the special pipe, to which the time of others is
# added, and cycles until the result. Measured on an H200, as throughput and in chains; 64-bit integers that fit into 32
# bits, as most do. Others take 140 instructions.
_SEQUENCES: dict[tuple[str, str], tuple[float, float, float]] = {
    ("div", "f32"): (10, 2, 53),
    ("div", "f64"): (28, 1, 120),
    ("rcp", "f32"): (6, 1, 72),
    ("rcp", "f64"): (15, 1, 70),
    ("sqrt", "f32"): (8, 1.4, 54),
    ("sqrt", "f64"): (26, 1, 90),
    ("div", "s32"): (26, 4, 80),
    ("div", "u32"): (18, 3.2, 75),
    ("rem", "s32"): (22, 4, 76),
    ("rem", "u32"): (17, 3.1, 76),
    ("div", "s64"): (35, 2, 175),
    ("div", "u64"): (35, 2, 175),
    ("rem", "s64"): (35, 2, 175),
    ("rem", "u64"): (35, 2, 175),
}
_DOUBLE_INSTRUCTIONS = {"div": 8, "rcp": 5, "sqrt": 8}
"""Instructions on the float64 pipe of the sequences for float64."""
_BRANCHING_TYPES = ("f32", "f64", "s64", "u64")
"""Types whose sequences end with a branch to a slow path: a warp issues no other instruction until it is decided."""
# Tile products by element type: multiply-adds per machine instruction, and the time per multiply-add relative to 16-bit
# floats.
_PRODUCTS = {
    "f16": (2048, 1.0), "bf16": (2048, 1.0), "tf32": (512, 2.0), "s8": (4096, 0.5), "u8": (4096, 0.5),
    "f64": (256, 16.0),
}  # fmt: skip
_WARPGROUP_LANES = 2048
"""Multiply-adds of 16-bit floats that a multiprocessor starts per cycle for `wgmma`, which only compute capability 9.0
has: 989 TFLOPS of 132 multiprocessors at 1.83 GHz (NVIDIA H100 Tensor Core GPU, data sheet)."""
_WARPGROUP_WARPS = 4
_WARPGROUP_MULTIPLY_ADDS = 64 * 256 * 16 / _WARPGROUP_WARPS
"""Multiply-adds of one warp for an instruction of the largest shape."""
_PRODUCT_OPCODES = ("mma", "wgmma")
_TO_TF32 = 3.2
"""The mean number of machine instructions that round to TF32."""
_CONSTANT_CYCLES = 2.0
"""Cycles of a multiprocessor for a constant at an index that all lanes share. Measured on an H200."""
_SHARED_DOUBLE_RATE = 0.9
"""The share of its peak rate that the float64 unit reaches on GPUs whose schedulers share it. gpuFLOPBench, RTX 3080:
0.75 to 0.9 in kernels that float64 limits, with their counted operations."""
_APPROXIMATE_OPCODES = ("rsqrt", "ex2", "lg2", "sin", "cos", "rcp", "sqrt", "tanh")
_BITWISE_OPCODES = ("and", "or", "xor", "not", "lop3")


class CostTable:
    """The cost of each instruction of a kernel, considering how the assembler combines neighboring instructions.

    Parameters
    ----------
    kernel : PtxKernel
    gpu : GpuDescription
    indexed_lines : collection of int, optional
        The lines of the text for which the machine code loads constants at an index; other constants are operands. None
        if the machine code is unknown.
    """

    def __init__(self, kernel: PtxKernel, gpu: GpuDescription, indexed_lines: Container[int] | None = None) -> None:
        self._gpu = gpu
        self._indexed_lines = indexed_lines
        self._lane_registers = find_lane_registers(kernel)
        self._readers: dict[str, list[tuple[PtxInstruction, int]]] = defaultdict(list)
        self._writers = kernel.find_writers()
        for instruction in kernel.instructions:
            for index, operand in enumerate(instruction.operands):
                if index == 0 and instruction.written_registers:
                    continue
                for name in instruction.read_registers:
                    if name in operand:
                        self._readers[name].append((instruction, index))
        lanes = gpu.schedulers
        self._float = WARP * lanes / gpu.float_lanes
        self._integer = WARP * lanes / gpu.integer_lanes
        self._double = WARP * lanes / gpu.double_lanes
        self._special = WARP * lanes / gpu.special_lanes
        if self._double > self._special:
            self._double /= _SHARED_DOUBLE_RATE

    def find_cost(self, instruction: PtxInstruction) -> OperationCost:
        """Return the cost of an instruction."""
        opcode, words, type = instruction.opcode, instruction.modifiers, instruction.type
        gpu = self._gpu
        if opcode in ("ld", "ldu") and "param" in words:
            return self._indexed_constant_cost() if self._has_parameter_index(instruction) else _FREE
        if opcode in ("ld", "st", "atom", "red", "tex", "ldu", "cp", "ldmatrix"):
            return self._memory_cost(instruction)
        if opcode in ("bar", "barrier"):
            if "warp" in words:
                return OperationCost(COMPUTE, CONTROL, 1, 1, 1)
            return OperationCost(BARRIER, CONTROL, 1, 1, 1)
        if opcode in ("membar", "fence"):
            heavy = "cta" not in words
            return OperationCost(COMPUTE, CONTROL, 2, 2, gpu.last_cache_cycles if heavy else 10)
        if opcode == "bra":
            return OperationCost(JUMP, CONTROL, 1, 1, 1)
        if opcode in ("ret", "exit"):
            return OperationCost(COMPUTE, CONTROL, 1, 1, 1)
        if opcode in ("wmma", "mma"):
            return self._product_cost(instruction, gpu.tensor_lanes)
        if opcode == "wgmma":
            return self._warpgroup_cost(instruction)
        if opcode == "mbarrier":
            return OperationCost(COMPUTE, EXCHANGE, 1, 1, gpu.shared_cycles)
        if opcode == TILE_ADDRESS:
            return OperationCost(COMPUTE, INTEGER, 1, self._integer, gpu.arithmetic_cycles)
        if opcode in ("shfl", "match", "redux", "vote", "activemask", "elect"):
            return self._exchange_cost(instruction)
        if opcode == "mov":
            special = any(operand.startswith(("%tid", "%ctaid", "%laneid")) for operand in instruction.operands[1:])
            return OperationCost(COMPUTE, INTEGER, 1, self._integer, 12) if special else _FREE
        if opcode in ("cvta", "isspacep", "pragma", "nanosleep", "prefetch"):
            return _FREE
        if type == "pred":
            return _FREE
        if opcode == "setp":
            busy = self._double if type == "f64" else self._integer
            slots = 2 if type in ("s64", "u64", "b64") else 1
            return OperationCost(
                COMPUTE, DOUBLE if type == "f64" else INTEGER, slots, slots * busy, gpu.arithmetic_cycles + 2
            )
        if opcode in ("cvt", "selp", "shr") and self._is_part_operand(instruction):
            return _FREE
        if opcode == "cvt":
            return self._conversion_cost(instruction)
        if opcode == LIBRARY_FUNCTION:
            return self._library_cost(instruction)
        if type in ("f32", "f16", "b16x2", "f16x2"):
            return self._float_cost(instruction)
        if type == "f64":
            return self._double_cost(instruction)
        return self._integer_cost(instruction)

    def _memory_cost(self, instruction: PtxInstruction) -> OperationCost:
        gpu, words = self._gpu, instruction.modifiers
        if "const" in words:
            # A uniform constant with a known address is an operand; otherwise one of a pair that is prefetched. The
            # constant cache serves one line at a time to the lanes of a warp, and to all warps.
            if not self._lane_registers.isdisjoint(instruction.read_registers):
                return OperationCost(MEMORY, LOAD_STORE, 1, 1, gpu.shared_cycles)
            if not has_constant_index(instruction, self._indexed_lines):
                return _FREE
            return self._indexed_constant_cost()
        latency = gpu.shared_cycles if "shared" in words else 0.0
        if instruction.is_shared_loop:
            return self._shared_loop_cost(instruction)
        if instruction.opcode in ("atom", "red") and "shared" in words:
            latency = gpu.shared_atomic_cycles
        return OperationCost(MEMORY, LOAD_STORE, 1, 1, latency)

    def _indexed_constant_cost(self) -> OperationCost:
        gpu = self._gpu
        return OperationCost(COMPUTE, CONTROL, 0.5, _CONSTANT_CYCLES * gpu.schedulers, gpu.shared_cycles)

    def _has_parameter_index(self, instruction: PtxInstruction) -> bool:
        """Return whether the address of a parameter is computed, as of an array's element in a struct."""
        return any(
            writer.opcode != "mov" for name in instruction.read_registers for writer in self._writers.get(name, ())
        )

    def _shared_loop_cost(self, instruction: PtxInstruction) -> OperationCost:
        """Return the cost of a round: load, operation, comparison with exchange, test and jump."""
        gpu, is_double = self._gpu, instruction.type == "f64"
        latency = gpu.shared_cycles + gpu.shared_atomic_cycles + 2 * gpu.arithmetic_cycles
        latency += gpu.double_cycles if is_double else gpu.arithmetic_cycles
        return OperationCost(
            MEMORY, DOUBLE if is_double else FLOAT, 5, self._double if is_double else self._float, latency
        )

    def _exchange_cost(self, instruction: PtxInstruction) -> OperationCost:
        gpu = self._gpu
        match instruction.opcode:
            case "shfl":
                return OperationCost(COMPUTE, EXCHANGE, 1, gpu.schedulers, gpu.shuffle_cycles)
            case "redux":
                return OperationCost(COMPUTE, EXCHANGE, 2, 2 * gpu.schedulers, 1.5 * gpu.shuffle_cycles)
            case "match":
                return OperationCost(COMPUTE, MATCH, 1, 64 * gpu.schedulers, 15 * gpu.shuffle_cycles)
        return OperationCost(COMPUTE, INTEGER, 1, self._integer, gpu.arithmetic_cycles + 8)

    def _warpgroup_cost(self, instruction: PtxInstruction) -> OperationCost:
        """Return the cost for one of the four warps: a quarter of the product, on its scheduler's tensor core."""
        if instruction.modifiers[0] in ("fence", "commit_group", "wait_group"):
            return OperationCost(COMPUTE, CONTROL, 1, 1, 1)
        product, shape = self._product_cost(instruction, _WARPGROUP_LANES), shape_of(instruction)
        if instruction.modifiers[0] == "mma_async":
            busy = product.busy / _WARPGROUP_WARPS
            return OperationCost(COMPUTE, TENSOR, 1, busy, busy)
        slots = shape.multiply_adds / _WARPGROUP_MULTIPLY_ADDS if shape is not None else 1.0
        return OperationCost(COMPUTE, TENSOR, slots, product.busy, product.busy)

    def _product_cost(self, instruction: PtxInstruction, lanes: float) -> OperationCost:
        """Return the cost of a tile product: machine instructions that share the tensor core of a scheduler."""
        gpu, shape = self._gpu, shape_of(instruction)
        per_instruction, slowdown = _PRODUCTS.get(element_of(instruction), (2048, 1.0))
        multiply_adds = shape.multiply_adds if shape is not None else per_instruction
        busy = multiply_adds * slowdown * gpu.schedulers / lanes
        return OperationCost(COMPUTE, TENSOR, multiply_adds / per_instruction, busy, gpu.tensor_cycles + busy)

    def _conversion_cost(self, instruction: PtxInstruction) -> OperationCost:
        if "tf32" in instruction.modifiers:
            latency = _TO_TF32 * self._gpu.arithmetic_cycles
            return OperationCost(COMPUTE, INTEGER, _TO_TF32, _TO_TF32 * self._integer, latency)
        target, source = (word for word in instruction.modifiers if word[-1:].isdigit() and word[:1] in "bsuf")
        latency = self._gpu.arithmetic_cycles
        if target[0] == "f" and source[0] == "f" and target == source:
            return OperationCost(COMPUTE, FLOAT, 1, self._float, latency)
        if "f64" in (target, source) or (target[0] == "f") != (source[0] == "f"):
            if "64" in target + source and self._double > self._special:
                # GPUs with few float64 lanes convert from and to 64-bit types as slowly as they add float64.
                return OperationCost(COMPUTE, DOUBLE, 1, self._double, latency + 12)
            busy = self._special if "64" in target + source else self._special / 2
            return OperationCost(COMPUTE, SPECIAL, 1, busy, latency + 12)
        if target[0] == "f":
            return OperationCost(COMPUTE, INTEGER, 1, self._integer, latency)
        narrower = int(target[1:]) <= int(source[1:])
        if narrower and int(target[1:]) >= 32:
            return _FREE
        if source in ("u32", "b32") and int(target[1:]) == 64:
            return _FREE
        if target in ("u32", "s32", "b32", "u16", "s16") and source in ("u16", "u8", "b16", "b8"):
            return _FREE
        if self._is_only_read_by(instruction, ("mul", "mad", "shl", "add")) and int(target[1:]) == 64:
            return _FREE
        return OperationCost(COMPUTE, INTEGER, 1, self._integer, latency)

    def _float_cost(self, instruction: PtxInstruction) -> OperationCost:
        opcode, words, latency = instruction.opcode, instruction.modifiers, self._gpu.arithmetic_cycles
        if opcode in ("neg", "abs"):
            return _FREE
        if opcode in ("min", "max", "selp", "slct", "copysign"):
            return OperationCost(COMPUTE, INTEGER, 1, self._integer, latency)
        if (opcode == "div" and "approx" in words) or (opcode == "div" and "full" in words):
            slots = 2.0 if "approx" in words else 4.0
            return OperationCost(COMPUTE, SPECIAL, slots, self._special, self._gpu.special_cycles + 2 * latency)
        if opcode in _APPROXIMATE_OPCODES and "approx" in words:
            is_scaled = "ftz" not in words and opcode in ("ex2", "lg2", "rsqrt", "rcp", "sqrt")
            slots = 3.5 if is_scaled else 2.0 if opcode in ("sin", "cos") else 1.0
            extra_latency = 2 * latency if slots > 1 else 0
            return OperationCost(COMPUTE, SPECIAL, slots, self._special, self._gpu.special_cycles + extra_latency)
        if (opcode, "f32") in _SEQUENCES:
            return self._sequence_cost(opcode, "f32")
        return OperationCost(COMPUTE, FLOAT, 1, self._float, latency)

    def _library_cost(self, instruction: PtxInstruction) -> OperationCost:
        cost = get_function_cost(instruction.modifiers)
        if instruction.type == "f64":
            busy = cost.pipe_instructions * self._double
            latency = max(cost.latency, busy)
            return OperationCost(COMPUTE, DOUBLE, cost.slots, busy, latency, latency if cost.blocked else 0.0)
        busy = cost.pipe_instructions * self._special
        return OperationCost(COMPUTE, SPECIAL, cost.slots, busy, cost.latency, cost.blocked)

    def _double_cost(self, instruction: PtxInstruction) -> OperationCost:
        opcode = instruction.opcode
        if opcode in ("neg", "abs"):
            return _FREE
        if (opcode, "f64") in _SEQUENCES:
            return self._sequence_cost(opcode, "f64")
        if opcode in ("selp", "slct"):
            return OperationCost(COMPUTE, INTEGER, 2, 2 * self._integer, self._gpu.arithmetic_cycles)
        if opcode in ("min", "max"):
            return OperationCost(COMPUTE, DOUBLE, 4, self._double, self._gpu.double_cycles + 8)
        return OperationCost(COMPUTE, DOUBLE, 1, self._double, self._gpu.double_cycles)

    def _sequence_cost(self, opcode: str, type: str) -> OperationCost:
        slots, special, latency = _SEQUENCES[opcode, type]
        if type == "f64":
            busy = _DOUBLE_INSTRUCTIONS[opcode] * self._double
            latency = max(latency, busy)
            return OperationCost(COMPUTE, DOUBLE, slots, busy, latency, latency)
        blocked = latency if type in _BRANCHING_TYPES else 0.0
        return OperationCost(COMPUTE, SPECIAL, slots, special * self._special, latency, blocked)

    def _integer_cost(self, instruction: PtxInstruction) -> OperationCost:
        opcode, words, type = instruction.opcode, instruction.modifiers, instruction.type
        latency, wide = self._gpu.arithmetic_cycles, type[1:] == "64"
        if (opcode, type) in _SEQUENCES:
            return self._sequence_cost(opcode, type)
        if opcode in ("mul", "mad"):
            if "wide" in words:
                if (
                    opcode == "mul"
                    and self._is_only_read_by(instruction, ("add",))
                    and self._has_single_use(instruction)
                ):
                    return _FREE
                return OperationCost(COMPUTE, FLOAT, 1, self._integer, latency + 1)
            slots = 4.0 if wide else 2.0 if "hi" in words else 1.0
            return OperationCost(COMPUTE, FLOAT, slots, slots * self._integer, latency * (2 if wide else 1))
        if opcode in ("add", "sub") and wide:
            return self._long_sum_cost(instruction)
        if opcode == "shl" and not wide and self._is_only_read_by(instruction, ("add",)):
            return _FREE
        if (
            opcode == "shr"
            and not wide
            and self._is_only_read_by(instruction, ("add",))
            and self._has_single_use(instruction)
        ):
            return _FREE  # the high part of a shifted address, such as i / 32 + offset
        if (
            opcode in _BITWISE_OPCODES
            and not wide
            and self._is_only_read_by(instruction, _BITWISE_OPCODES)
            and self._has_single_use(instruction)
        ):
            return _FREE
        if opcode in ("popc", "clz", "bfind", "brev"):
            return OperationCost(COMPUTE, SPECIAL, 1, self._special, latency + 13)
        if opcode in ("neg", "cvta"):
            return _FREE
        slots = {"bfi": 2.0, "bfe": 2.0, "sad": 2.0, "abs": 1.0}.get(opcode, 1.0) * (2 if wide else 1)
        # The assembler balances sums and shifts between both pipes.
        balanced = 0.7 if opcode in ("add", "sub", "shl") else 1.0
        return OperationCost(COMPUTE, INTEGER, slots, slots * self._integer * balanced, latency)

    def _long_sum_cost(self, instruction: PtxInstruction) -> OperationCost:
        """Return the cost of a 64-bit sum: folded into loads that use it or a product before it, else two sums."""
        latency = self._gpu.arithmetic_cycles
        last = instruction.operands[-1]
        if not last.startswith("%") and self._is_only_address(instruction):
            return _FREE
        if self._is_narrowed(instruction.operands[0], set()):
            return OperationCost(COMPUTE, INTEGER, 1, self._integer * 0.7, latency)
        for operand in instruction.operands[1:]:
            makers = self._writers[operand]
            if len(makers) == 1 and makers[0].opcode == "mul" and "wide" in makers[0].modifiers:
                return OperationCost(COMPUTE, FLOAT, 1, self._integer, latency + 1)
        return OperationCost(COMPUTE, INTEGER, 2, 2 * self._integer * 0.7, latency + 2)

    def _is_narrowed(self, register: str, visited: set[str]) -> bool:
        """Return whether only the low half of a sum is used, as for an address in shared memory."""
        visited.add(register)
        readers = [reader for reader, _ in self._readers[register]]
        return bool(readers) and all(
            (reader.opcode == "cvt" and reader.modifiers[0][1:] == "32")
            or (
                reader.opcode in ("add", "sub")
                and (reader.operands[0] in visited or self._is_narrowed(reader.operands[0], visited))
            )
            for reader in readers
        )

    def _is_part_operand(self, instruction: PtxInstruction) -> bool:
        """Return whether a result is only an operand of the timing model's own products, itself or unpacked.

        Their operands are elements; the tensor cores unpack them from registers.
        """
        readers = self._readers[instruction.operands[0]]
        return (
            bool(readers)
            and "tf32" not in instruction.modifiers
            and all(
                (reader.opcode in _PRODUCT_OPCODES and "part" in reader.modifiers)
                or (reader.opcode in ("cvt", "shr") and self._is_part_operand(reader))
                for reader, _ in readers
            )
        )

    def _is_only_read_by(self, instruction: PtxInstruction, opcodes: Sequence[str]) -> bool:
        readers = self._readers[instruction.operands[0]]
        return bool(readers) and all(reader.opcode in opcodes for reader, _ in readers)

    def _has_single_use(self, instruction: PtxInstruction) -> bool:
        return len(self._readers[instruction.operands[0]]) == 1

    def _is_only_address(self, instruction: PtxInstruction) -> bool:
        register = instruction.operands[0]
        readers = self._readers[register]
        return bool(readers) and all(f"[{register}" in reader.operands[place] for reader, place in readers)


def has_constant_index(instruction: PtxInstruction, indexed_lines: Container[int] | None) -> bool:
    """Return whether a load of a constant has an index, or is an operand; `indexed_lines` as of `CostTable`."""
    if indexed_lines is not None and instruction.text_line not in indexed_lines:
        return False  # the assembler has unrolled the loop
    return bool(instruction.read_registers)


@dataclass(frozen=True)
class ScheduledInstruction:
    """An instruction in issue order: its index in the text, and registers renamed to be written once per block."""

    index: int
    instruction: PtxInstruction
    cost: OperationCost
    read_registers: tuple[str, ...]
    written_registers: tuple[str, ...]


def schedule_block(block: BasicBlock, table: CostTable) -> list[ScheduledInstruction]:
    """Return a basic block's instructions in the order in which the assembler would schedule them.

    Instructions with the longest chain of dependents go first, so loads precede independent work. Memory accesses keep
    their order if one of them is a write. No instruction moves across one that contains a branch.
    """
    instructions = block.instructions
    costs = [table.find_cost(instruction) for instruction in instructions]
    dependents: list[set[int]] = [set() for _ in instructions]
    names = _rename_registers(instructions)
    writer: dict[str, int] = {}
    stores: dict[str, int] = {}
    accesses: dict[str, list[int]] = defaultdict(list)
    fence = branch = -1
    for index, instruction in enumerate(instructions):
        read, written = names[index]
        dependencies = {writer[name] for name in read if name in writer}
        for space in _spaces(instruction):
            is_fence = space == "everything"
            is_write = is_fence or instruction.opcode in ("st", "atom", "red") or "volatile" in instruction.modifiers
            if is_fence:
                dependencies.update(
                    earlier for earlier in range(fence + 1, index) if costs[earlier].kind == MEMORY or earlier == fence
                )
                fence = index
                break
            if space in stores:
                dependencies.add(stores[space])
            if is_write:
                dependencies.update(accesses[space])
                stores[space] = index
                accesses[space] = []
            else:
                accesses[space].append(index)
        if fence >= 0 and fence != index and (costs[index].kind == MEMORY or instruction.opcode in _ORDERED_OPCODES):
            dependencies.add(fence)
        if branch >= 0:
            dependencies.add(branch)
        if costs[index].blocked:
            dependencies.update(range(branch + 1, index))
            branch = index
        if instruction.ends_block:
            dependencies.update(range(index))
        for earlier in dependencies:
            if earlier != index:
                dependents[earlier].add(index)
        for name in written:
            writer[name] = index
    order = _IssueOrder(instructions, costs, dependents).compute()
    return [ScheduledInstruction(index, instructions[index], costs[index], *names[index]) for index in order]


_ORDERED_OPCODES = ("bar", "barrier", "membar", "fence")


def _rename_registers(instructions: Sequence[PtxInstruction]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the registers that each instruction reads and writes, renamed to be written only once."""
    last_write: dict[str, int] = {}
    for index, instruction in enumerate(instructions):
        for name in instruction.written_registers:
            last_write[name] = index
    current: dict[str, str] = {}
    renamed = []
    for index, instruction in enumerate(instructions):
        read = [current.get(name, name) for name in instruction.read_registers]
        if instruction.guard:  # a false guard keeps the old value
            read += [current[name] for name in instruction.written_registers if name in current]
        written = []
        for name in instruction.written_registers:
            current[name] = name if last_write[name] == index else f"{name}'{index}"
            written.append(current[name])
        renamed.append((tuple(dict.fromkeys(read)), tuple(written)))
    return renamed


def _spaces(instruction: PtxInstruction) -> tuple[str, ...]:
    opcode, words = instruction.opcode, instruction.modifiers
    if opcode in ("bar", "barrier", "membar", "fence"):
        return ("everything",)
    if opcode in ("ld", "st", "atom", "red"):
        return tuple(word for word in words if word in ("global", "shared", "local")) or ("global",)
    return ()


_LOAD_LATENCY = 200.0
"""The assembler's assumed latency of a global load, in cycles."""


_MAXIMUM_IN_FLIGHT = 10
"""The most registers of loaded values that the assembler keeps before it uses the first."""


class _IssueOrder:
    """List scheduling of a basic block: instructions with the longest chain of dependents go first."""

    def __init__(
        self, instructions: Sequence[PtxInstruction], costs: Sequence[OperationCost], dependents: Sequence[set[int]]
    ) -> None:
        count = len(instructions)
        self._costs, self._dependents = costs, dependents
        has_result = [bool(instruction.written_registers) for instruction in instructions]
        self._is_load = [
            costs[index].kind == MEMORY and has_result[index] and instructions[index].opcode == "ld"
            for index in range(count)
        ]
        self._latencies = [
            _LOAD_LATENCY
            if cost.kind == MEMORY and not cost.latency and has_result[index]
            else max(cost.latency, 1.0 * (cost.kind != ALIAS))
            for index, cost in enumerate(costs)
        ]
        self._height = [0.0] * count
        for index in range(count - 1, -1, -1):
            highest = max((self._height[later] for later in dependents[index]), default=0.0)
            self._height[index] = self._latencies[index] + highest
        self._missing_operands = [0] * count
        self._producers: dict[int, list[int]] = defaultdict(list)
        for index in range(count):
            for later in dependents[index]:
                self._missing_operands[later] += 1
                if costs[index].kind == MEMORY and has_result[index]:
                    self._producers[later].append(index)
        self._loaded_registers = [
            1 if "shared" in instruction.modifiers else len(instruction.written_registers)
            for instruction in instructions
        ]
        self._ready_at = [0.0] * count
        self._ready = [index for index in range(count) if not self._missing_operands[index]]
        self._in_flight: set[int] = set()
        self._cycle = 0.0

    def compute(self) -> list[int]:
        """Return the indices of the instructions in issue order."""
        order = []
        while self._ready:
            available = self._find_available()
            if not available:
                self._cycle = min(self._ready_at[index] for index in self._ready)
                continue
            chosen = max(available, key=lambda index: (self._costs[index].kind == ALIAS, self._height[index], -index))
            order.append(chosen)
            self._issue(chosen)
        return order

    def _find_available(self) -> list[int]:
        available = [index for index in self._ready if self._ready_at[index] <= self._cycle]
        if not available:
            return available
        registers = sum(self._loaded_registers[index] for index in self._in_flight)
        # Registers for loaded values are scarce, so loaded values are used before more loads are issued.
        if possible := [
            index
            for index in available
            if not self._is_load[index] or registers + self._loaded_registers[index] <= _MAXIMUM_IN_FLIGHT
        ]:
            return possible
        consumers = [index for index in self._ready if index in self._producers]
        others = consumers or [index for index in self._ready if not self._is_load[index]]
        if not others:
            return available
        self._cycle = max(self._cycle, min(self._ready_at[index] for index in others))
        return [index for index in others if self._ready_at[index] <= self._cycle]

    def _issue(self, chosen: int) -> None:
        self._ready.remove(chosen)
        if self._is_load[chosen] and self._dependents[chosen]:
            self._in_flight.add(chosen)
        self._in_flight.difference_update(self._producers.get(chosen, ()))
        self._cycle += self._costs[chosen].slots
        for later in self._dependents[chosen]:
            self._ready_at[later] = max(
                self._ready_at[later], self._cycle + self._latencies[chosen] - self._costs[chosen].slots
            )
            self._missing_operands[later] -= 1
            if not self._missing_operands[later]:
                self._ready.append(later)
