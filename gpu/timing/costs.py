"""What PTX instructions cost on a multiprocessor: the machine instructions that they become, and what those occupy.

PTX is not what runs: the driver's assembler folds addresses into loads, products into sums, copies into nothing. What
is said here of instructions that become several is what the assembler makes of them for compute capability 8 and 9.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gpu.timing.gpus import GpuDescription
from gpu.timing.ptx.program import BasicBlock, PtxInstruction, PtxKernel
from gpu.timing.ptx.tiles import PLACE, element_of, shape_of
from gpu.warp import WARP

ALIAS, COMPUTE, MEMORY, BARRIER, JUMP = range(5)
"""What an operation is, as `multiprocessor.cu` has it."""

FLOAT, INTEGER, DOUBLE, SPECIAL, EXCHANGE, LOAD_STORE, CONTROL, MATCH, TENSOR = range(9)
"""The pipes of a scheduler."""

PIPES = ("float", "integer", "double", "special", "exchange", "load/store", "control", "match", "tensor")


@dataclass(frozen=True)
class OperationCost:
    """What an instruction costs a warp.

    Parameters
    ----------
    kind : int
        One of ALIAS (it costs nothing and passes on its operands), COMPUTE, MEMORY, BARRIER, JUMP.
    pipe : int
    slots : float
        Machine instructions, each of which takes a scheduler's cycle.
    busy : float
        Cycles for which it holds its pipe of one scheduler.
    latency : float
        Cycles until its result can be used.
    """

    kind: int
    pipe: int = CONTROL
    slots: float = 0.0
    busy: float = 0.0
    latency: float = 0.0


_FREE = OperationCost(ALIAS)

# Machine instructions, reciprocals and the like among them, cycles until the result: of what becomes several.
_SEVERAL: dict[tuple[str, str], tuple[float, float, float]] = {
    ("div", "f32"): (10, 1, 52),
    ("div", "f64"): (28, 1, 130),
    ("rcp", "f32"): (6, 1, 40),
    ("rcp", "f64"): (20, 1, 100),
    ("sqrt", "f32"): (8, 1, 50),
    ("sqrt", "f64"): (24, 1, 120),
    ("div", "s32"): (22, 2, 72),
    ("div", "u32"): (17, 2, 60),
    ("rem", "s32"): (22, 2, 72),
    ("rem", "u32"): (17, 2, 60),
    ("div", "s64"): (80, 2, 250),
    ("div", "u64"): (75, 2, 240),
    ("rem", "s64"): (80, 2, 250),
    ("rem", "u64"): (75, 2, 240),
}
# Of products of tiles by their elements: multiply-adds of a machine instruction, and how much longer one takes than one
# of 16-bit floats.
_PRODUCTS = {
    "f16": (2048, 1.0), "bf16": (2048, 1.0), "tf32": (512, 2.0), "s8": (4096, 0.5), "u8": (4096, 0.5),
    "f64": (256, 16.0),
}  # fmt: skip
_WARPGROUP_LANES = 2048
"""Multiply-adds of 16-bit floats that a multiprocessor begins in a cycle for `wgmma`, which compute capability 9.0 has
alone: 989 TFLOPS of 132 multiprocessors at 1.83 GHz (NVIDIA H100 Tensor Core GPU, data sheet)."""
_WARPS_TOGETHER = 4
_TO_TF32 = 3.2
"""Machine instructions that round to TF32, the mean."""
_APPROXIMATE = ("rsqrt", "ex2", "lg2", "sin", "cos", "rcp", "sqrt", "tanh")
_BITS = ("and", "or", "xor", "not", "lop3")


class CostTable:
    """What each instruction of a kernel costs, as its neighbors let the assembler make it.

    Parameters
    ----------
    kernel : PtxKernel
    gpu : GpuDescription
    """

    def __init__(self, kernel: PtxKernel, gpu: GpuDescription) -> None:
        self._gpu = gpu
        self._readers: dict[str, list[tuple[PtxInstruction, int]]] = defaultdict(list)
        self._writers: dict[str, list[PtxInstruction]] = defaultdict(list)
        for block in kernel.blocks:
            for each in block.instructions:
                for name in each.written:
                    self._writers[name].append(each)
                for place, operand in enumerate(each.operands):
                    if place == 0 and each.written:
                        continue
                    for name in each.read:
                        if name in operand:
                            self._readers[name].append((each, place))
        lanes = gpu.schedulers
        self._float = WARP * lanes / gpu.float_lanes
        self._integer = WARP * lanes / gpu.integer_lanes
        self._double = WARP * lanes / gpu.double_lanes
        self._special = WARP * lanes / gpu.special_lanes

    def of(self, instruction: PtxInstruction) -> OperationCost:
        """Return what an instruction costs."""
        opcode, words, type = instruction.opcode, instruction.words, instruction.type
        gpu = self._gpu
        if opcode in ("ld", "ldu") and "param" in words:
            return _FREE
        if opcode == "pragma":
            return _FREE
        if opcode in ("ld", "st", "atom", "red", "tex", "ldu", "cp", "ldmatrix"):
            return self._memory(instruction)
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
            return self._product(instruction, gpu.tensor_lanes)
        if opcode == "wgmma":
            return self._of_warpgroup(instruction)
        if opcode == "mbarrier":
            return OperationCost(COMPUTE, EXCHANGE, 1, 1, gpu.shared_cycles)
        if opcode == PLACE:
            return OperationCost(COMPUTE, INTEGER, 1, self._integer, gpu.arithmetic_cycles)
        if opcode in ("shfl", "match", "redux", "vote", "activemask", "elect"):
            return self._exchange(instruction)
        if opcode == "mov":
            special = any(operand.startswith(("%tid", "%ctaid", "%laneid")) for operand in instruction.operands[1:])
            return OperationCost(COMPUTE, INTEGER, 1, self._integer, 12) if special else _FREE
        if opcode in ("cvta", "isspacep", "pragma", "nanosleep", "prefetch"):
            return _FREE
        if type == "pred" or (opcode in _BITS and type == "pred"):
            return _FREE
        if opcode == "setp":
            busy = self._double if type == "f64" else self._integer
            slots = 2 if type in ("s64", "u64", "b64") else 1
            return OperationCost(
                COMPUTE, DOUBLE if type == "f64" else INTEGER, slots, slots * busy, gpu.arithmetic_cycles + 2
            )
        if opcode == "cvt":
            return self._conversion(instruction)
        if type in ("f32", "f16", "b16x2", "f16x2"):
            return self._single(instruction)
        if type == "f64":
            return self._in_double(instruction)
        return self._whole(instruction)

    def _memory(self, instruction: PtxInstruction) -> OperationCost:
        gpu, words = self._gpu, instruction.words
        if "const" in words:
            # The same for all lanes: an operand where the address is known, else one of a pair that is fetched before.
            uniform = not any(name.startswith("%") for name in instruction.read)
            return _FREE if uniform else OperationCost(COMPUTE, CONTROL, 0.5, 0.5, gpu.shared_cycles)
        latency = gpu.shared_cycles if "shared" in words else 0.0
        if instruction.opcode in ("atom", "red") and "shared" in words:
            latency = gpu.shared_atomic_cycles
        return OperationCost(MEMORY, LOAD_STORE, 1, 1, latency)

    def _exchange(self, instruction: PtxInstruction) -> OperationCost:
        gpu = self._gpu
        match instruction.opcode:
            case "shfl":
                return OperationCost(COMPUTE, EXCHANGE, 1, gpu.schedulers, gpu.shuffle_cycles)
            case "redux":
                return OperationCost(COMPUTE, EXCHANGE, 2, 2 * gpu.schedulers, 1.5 * gpu.shuffle_cycles)
            case "match":
                return OperationCost(COMPUTE, MATCH, 1, 64 * gpu.schedulers, 15 * gpu.shuffle_cycles)
        return OperationCost(COMPUTE, INTEGER, 1, self._integer, gpu.arithmetic_cycles + 8)

    def _of_warpgroup(self, instruction: PtxInstruction) -> OperationCost:
        """What a warp of four has of a product: a quarter of it, on its own scheduler's tensor core."""
        if instruction.words[0] in ("fence", "commit_group", "wait_group"):
            return OperationCost(COMPUTE, CONTROL, 1, 1, 1)
        whole = self._product(instruction, _WARPGROUP_LANES)
        parts = _WARPS_TOGETHER if instruction.words[0] == "mma_async" else 1
        return OperationCost(COMPUTE, TENSOR, 1, whole.busy / parts, whole.busy / parts)

    def _product(self, instruction: PtxInstruction, lanes: float) -> OperationCost:
        """A product of tiles: machine instructions that share the tensor core of a scheduler."""
        gpu, shape = self._gpu, shape_of(instruction)
        each, slower = _PRODUCTS.get(element_of(instruction), (2048, 1.0))
        multiply_adds = shape.multiply_adds if shape is not None else each
        busy = multiply_adds * slower * gpu.schedulers / lanes
        return OperationCost(COMPUTE, TENSOR, multiply_adds / each, busy, gpu.tensor_cycles + busy)

    def _conversion(self, instruction: PtxInstruction) -> OperationCost:
        if "tf32" in instruction.words:
            latency = _TO_TF32 * self._gpu.arithmetic_cycles
            return OperationCost(COMPUTE, INTEGER, _TO_TF32, _TO_TF32 * self._integer, latency)
        to, of = (word for word in instruction.words if word[-1:].isdigit() and word[:1] in "bsuf")
        latency = self._gpu.arithmetic_cycles
        if to[0] == "f" and of[0] == "f" and to == of:
            return OperationCost(COMPUTE, FLOAT, 1, self._float, latency)
        if "f64" in (to, of) or (to[0] == "f") != (of[0] == "f"):
            wide = "64" in to + of
            return OperationCost(COMPUTE, SPECIAL, 1, self._special if wide else self._special / 2, latency + 12)
        if to[0] == "f":
            return OperationCost(COMPUTE, INTEGER, 1, self._integer, latency)
        narrower = int(to[1:]) <= int(of[1:])
        if narrower and int(to[1:]) >= 32:
            return _FREE
        if of in ("u32", "b32") and int(to[1:]) == 64:
            return _FREE
        if to in ("u32", "s32", "b32", "u16", "s16") and of in ("u16", "u8", "b16", "b8"):
            return _FREE
        if self._only_read_by(instruction, ("mul", "mad", "shl", "add")) and int(to[1:]) == 64:
            return _FREE
        return OperationCost(COMPUTE, INTEGER, 1, self._integer, latency)

    def _single(self, instruction: PtxInstruction) -> OperationCost:
        opcode, words, latency = instruction.opcode, instruction.words, self._gpu.arithmetic_cycles
        if opcode in ("neg", "abs"):
            return _FREE
        if opcode in ("min", "max", "selp", "slct", "copysign"):
            return OperationCost(COMPUTE, INTEGER, 1, self._integer, latency)
        if (opcode == "div" and "approx" in words) or (opcode == "div" and "full" in words):
            slots = 2.0 if "approx" in words else 4.0
            return OperationCost(COMPUTE, SPECIAL, slots, self._special, self._gpu.special_cycles + 2 * latency)
        if opcode in _APPROXIMATE and "approx" in words:
            scaled = "ftz" not in words and opcode in ("ex2", "lg2", "rsqrt", "rcp", "sqrt")
            slots = 3.5 if scaled else 2.0 if opcode in ("sin", "cos") else 1.0
            more = 2 * latency if slots > 1 else 0
            return OperationCost(COMPUTE, SPECIAL, slots, self._special, self._gpu.special_cycles + more)
        if (opcode, "f32") in _SEVERAL:
            return self._made_of_several(opcode, "f32")
        return OperationCost(COMPUTE, FLOAT, 1, self._float, latency)

    def _in_double(self, instruction: PtxInstruction) -> OperationCost:
        opcode = instruction.opcode
        if opcode in ("neg", "abs"):
            return _FREE
        if (opcode, "f64") in _SEVERAL:
            return self._made_of_several(opcode, "f64")
        if opcode in ("selp", "slct"):
            return OperationCost(COMPUTE, INTEGER, 2, 2 * self._integer, self._gpu.arithmetic_cycles)
        if opcode in ("min", "max"):
            return OperationCost(COMPUTE, DOUBLE, 4, self._double, self._gpu.double_cycles + 8)
        return OperationCost(COMPUTE, DOUBLE, 1, self._double, self._gpu.double_cycles)

    def _made_of_several(self, opcode: str, type: str) -> OperationCost:
        slots, special, latency = _SEVERAL[opcode, type]
        return OperationCost(COMPUTE, SPECIAL, slots, special * self._special, latency)

    def _whole(self, instruction: PtxInstruction) -> OperationCost:
        opcode, words, type = instruction.opcode, instruction.words, instruction.type
        latency, wide = self._gpu.arithmetic_cycles, type[1:] == "64"
        if (opcode, type) in _SEVERAL:
            return self._made_of_several(opcode, type)
        if opcode in ("mul", "mad"):
            if "wide" in words:
                if opcode == "mul" and self._only_read_by(instruction, ("add",)) and self._is_once(instruction):
                    return _FREE
                return OperationCost(COMPUTE, FLOAT, 1, self._integer, latency + 1)
            slots = 4.0 if wide else 2.0 if "hi" in words else 1.0
            return OperationCost(COMPUTE, FLOAT, slots, slots * self._integer, latency * (2 if wide else 1))
        if opcode in ("add", "sub") and wide:
            return self._long_sum(instruction)
        if opcode == "shl" and not wide and self._only_read_by(instruction, ("add",)):
            return _FREE
        if opcode == "shr" and not wide and self._only_read_by(instruction, ("add",)) and self._is_once(instruction):
            return _FREE  # the high part of a shifted address: i / 32, and what is added to that
        if opcode in _BITS and not wide and self._only_read_by(instruction, _BITS) and self._is_once(instruction):
            return _FREE
        if opcode in ("popc", "clz", "bfind", "brev"):
            return OperationCost(COMPUTE, SPECIAL, 1, self._special, latency + 13)
        if opcode in ("neg", "cvta"):
            return _FREE
        slots = {"bfi": 2.0, "bfe": 2.0, "sad": 2.0, "abs": 1.0}.get(opcode, 1.0) * (2 if wide else 1)
        # Sums and shifts may go to either pipe: the assembler balances them.
        balanced = 0.7 if opcode in ("add", "sub", "shl") else 1.0
        return OperationCost(COMPUTE, INTEGER, slots, slots * self._integer * balanced, latency)

    def _long_sum(self, instruction: PtxInstruction) -> OperationCost:
        """A sum of addresses: folded into the loads that use it, or into the product before it, or else two sums."""
        latency = self._gpu.arithmetic_cycles
        last = instruction.operands[-1]
        if not last.startswith("%") and self._only_addresses(instruction):
            return _FREE
        if self._is_narrowed(instruction.operands[0], set()):
            return OperationCost(COMPUTE, INTEGER, 1, self._integer * 0.7, latency)
        for operand in instruction.operands[1:]:
            makers = self._writers.get(operand, [])
            if len(makers) == 1 and makers[0].opcode == "mul" and "wide" in makers[0].words:
                return OperationCost(COMPUTE, FLOAT, 1, self._integer, latency + 1)
        return OperationCost(COMPUTE, INTEGER, 2, 2 * self._integer * 0.7, latency + 2)

    def _is_narrowed(self, register: str, seen: set[str]) -> bool:
        """Whether only the low half of a sum is used, as of an address in shared memory."""
        seen.add(register)
        readers = [reader for reader, _ in self._readers.get(register, [])]
        return bool(readers) and all(
            (reader.opcode == "cvt" and reader.words[0][1:] == "32")
            or (
                reader.opcode in ("add", "sub")
                and (reader.operands[0] in seen or self._is_narrowed(reader.operands[0], seen))
            )
            for reader in readers
        )

    def _only_read_by(self, instruction: PtxInstruction, opcodes: Sequence[str]) -> bool:
        readers = self._readers.get(instruction.operands[0], [])
        return bool(readers) and all(reader.opcode in opcodes for reader, _ in readers)

    def _is_once(self, instruction: PtxInstruction) -> bool:
        return len(self._readers.get(instruction.operands[0], [])) == 1

    def _only_addresses(self, instruction: PtxInstruction) -> bool:
        register = instruction.operands[0]
        readers = self._readers.get(register, [])
        return bool(readers) and all(f"[{register}" in reader.operands[place] for reader, place in readers)


@dataclass(frozen=True)
class Scheduled:
    """An instruction at its turn: its place in the text, and registers of which each is written once in the block."""

    place: int
    instruction: PtxInstruction
    cost: OperationCost
    read: tuple[str, ...]
    written: tuple[str, ...]


def scheduled(block: BasicBlock, table: CostTable) -> list[Scheduled]:
    """Return a basic block's instructions in the order in which the assembler would put them.

    What others wait for longest goes first, so that loads come before what can be done meanwhile; accesses to memory
    keep their order where one of them changes it.
    """
    instructions = block.instructions
    costs = [table.of(each) for each in instructions]
    after: list[set[int]] = [set() for _ in instructions]
    names = _renamed(instructions)
    writer: dict[str, int] = {}
    stores: dict[str, int] = {}
    accesses: dict[str, list[int]] = defaultdict(list)
    fence = -1
    for place, each in enumerate(instructions):
        read, written = names[place]
        before = {writer[name] for name in read if name in writer}
        for space in _spaces(each):
            is_fence = space == "everything"
            changes = is_fence or each.opcode in ("st", "atom", "red") or "volatile" in each.words
            if is_fence:
                before.update(
                    earlier for earlier in range(fence + 1, place) if costs[earlier].kind == MEMORY or earlier == fence
                )
                fence = place
                break
            if space in stores:
                before.add(stores[space])
            if changes:
                before.update(accesses[space])
                stores[space] = place
                accesses[space] = []
            else:
                accesses[space].append(place)
        if fence >= 0 and fence != place and (costs[place].kind == MEMORY or each.opcode in _ORDERED):
            before.add(fence)
        if each.ends_block:
            before.update(range(place))
        for earlier in before:
            if earlier != place:
                after[earlier].add(place)
        for name in written:
            writer[name] = place
    order = _in_order(instructions, costs, after)
    return [Scheduled(place, instructions[place], costs[place], *names[place]) for place in order]


_ORDERED = ("bar", "barrier", "membar", "fence")


def _renamed(instructions: Sequence[PtxInstruction]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return what each instruction reads and writes, where a register that is written again is another each time."""
    last: dict[str, int] = {}
    for place, each in enumerate(instructions):
        for name in each.written:
            last[name] = place
    current: dict[str, str] = {}
    found = []
    for place, each in enumerate(instructions):
        read = [current.get(name, name) for name in each.read]
        if each.guard:  # where it does not run, what was there stays
            read += [current[name] for name in each.written if name in current]
        written = []
        for name in each.written:
            current[name] = name if last[name] == place else f"{name}'{place}"
            written.append(current[name])
        found.append((tuple(dict.fromkeys(read)), tuple(written)))
    return found


def _spaces(instruction: PtxInstruction) -> tuple[str, ...]:
    opcode, words = instruction.opcode, instruction.words
    if opcode in ("bar", "barrier", "membar", "fence"):
        return ("everything",)
    if opcode in ("ld", "st", "atom", "red"):
        return tuple(word for word in words if word in ("global", "shared", "local")) or ("global",)
    return ()


_LOADED = 200.0
"""Cycles that the assembler reckons with until something is loaded from memory."""


_MOST_UNDER_WAY = 10


def _loads(instruction: PtxInstruction, cost: OperationCost) -> bool:
    return cost.kind == MEMORY and bool(instruction.written) and instruction.opcode == "ld"


def _in_order(
    instructions: Sequence[PtxInstruction], costs: Sequence[OperationCost], after: Sequence[set[int]]
) -> list[int]:
    count = len(instructions)
    latencies = [
        _LOADED
        if cost.kind == MEMORY and not cost.latency and each.written
        else max(cost.latency, 1.0 * (cost.kind != ALIAS))
        for each, cost in zip(instructions, costs, strict=True)
    ]
    height = [0.0] * count
    for place in range(count - 1, -1, -1):
        height[place] = latencies[place] + max((height[later] for later in after[place]), default=0.0)
    waiting = [0] * count
    for place in range(count):
        for later in after[place]:
            waiting[later] += 1
    ready_at = [0.0] * count
    ready = [place for place in range(count) if not waiting[place]]
    now, order = 0.0, []
    users = [len(each) for each in after]
    under_way: dict[int, int] = {}
    feeds: dict[int, list[int]] = defaultdict(list)
    for place in range(count):
        if costs[place].kind == MEMORY and instructions[place].written:
            for later in after[place]:
                feeds[later].append(place)
    while ready:
        able = [place for place in ready if ready_at[place] <= now]
        if len(under_way) >= _MOST_UNDER_WAY:
            # Registers for what is loaded are few: what is there is used before more is asked for.
            others = [place for place in ready if place not in feeds and not _loads(instructions[place], costs[place])]
            using = [place for place in ready if place in feeds]
            if not [place for place in able if not _loads(instructions[place], costs[place])] and (using or others):
                now = max(now, min(ready_at[place] for place in (using or others)))
                able = [place for place in (using or others) if ready_at[place] <= now]
            else:
                able = [place for place in able if not _loads(instructions[place], costs[place])] or able
        if not able:
            now = min(ready_at[place] for place in ready)
            continue
        chosen = max(able, key=lambda place: (costs[place].kind == ALIAS, height[place], -place))
        ready.remove(chosen)
        order.append(chosen)
        if _loads(instructions[chosen], costs[chosen]) and users[chosen]:
            under_way[chosen] = 1
        for loaded in feeds.get(chosen, ()):
            under_way.pop(loaded, None)
        now += costs[chosen].slots
        for later in after[chosen]:
            ready_at[later] = max(ready_at[later], now + latencies[chosen] - costs[chosen].slots)
            waiting[later] -= 1
            if not waiting[later]:
                ready.append(later)
    return order
