"""Matrix instructions of inline PTX: products of tensor cores, and loads and stores of their tiles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpu.simulator import ir
from gpu.simulator.frontend.assembly.matrix_instructions import (
    WarpgroupInstruction,
    parse_matrix_product,
    parse_warpgroup_product,
)
from gpu.simulator.frontend.assembly.parsing import Instruction, split_parts
from gpu.simulator.frontend.assembly.statement import AssemblyStatement, Lowerings
from gpu.simulator.frontend.lowering.conversions import build_constant
from gpu.simulator.ir.intrinsics import FULL_WARP_SYNC, MATRIX_PRODUCT, WARPGROUP_PRODUCT
from gpu.simulator.types import BOOL, FLOAT32, INT32, UINT8, UINT16, UINT32, UINT64, VOID, Pointer, Scalar

_REGISTERS_OF_A = 4
_FROM_HALF = "__lockstep_from_half"


@dataclass(frozen=True)
class _Tile:
    """A tile in shared memory that tensor cores read: its descriptor, and which factor of the product it is.

    For a tile that is not transposed also: the byte where a lane's part of the first 8 lines begins (`first`), the
    distances in bytes to the next 8 lines (`stride`) and between the halves of a line (`half_stride`), and the address
    bits that the swizzle XORs into others (`swizzle_bits`).
    """

    descriptor: ir.Local
    factor: str
    first: ir.Expression | None = None
    stride: ir.Expression = field(default_factory=lambda: build_constant(UINT32, 0))
    half_stride: ir.Expression = field(default_factory=lambda: build_constant(UINT32, 0))
    swizzle_bits: ir.Expression = field(default_factory=lambda: build_constant(UINT32, 0))

    def compute_byte_offset(self, part: int, half: int) -> ir.Expression:
        """Return the byte offset of a half of a line, `part` times 8 lines further on, before swizzling."""
        assert self.first is not None
        offset = self.first
        for count, distance in ((part, self.stride), (half, self.half_stride)):
            if count:
                offset = ir.Binary(UINT32, "+", offset, ir.Binary(UINT32, "*", distance, build_constant(UINT32, count)))
        return offset


def _lower_mma(asm: AssemblyStatement, instruction: Instruction) -> None:
    """Lower a product of tiles, one result after another; registers are unpacked once."""
    mma = parse_matrix_product(instruction.suffixes)
    if mma is None or len(instruction.operands) != 4:
        raise asm.unsupported_error()
    targets, *factors = (split_parts(operand) for operand in instruction.operands)
    if [len(targets), *map(len, factors)] != [mma.c, mma.a, mma.b, mma.c]:
        raise asm.unsupported_error()
    _require_full_warp(asm)
    elements_a, elements_b = (
        [_unpack(asm, unpack, register, mma.elements_per_register, mma.accumulator_type) for register in registers]
        for unpack, registers in ((mma.unpack_a, factors[0]), (mma.unpack_b, factors[1]))
    )
    unpack, values_per_register = ("half_at", 2) if mma.has_half_pairs else ("", 1)
    elements_c = [_unpack(asm, unpack, register, values_per_register, mma.accumulator_type) for register in factors[2]]
    sums = [one for register in elements_c for one in register]
    columns = [one for register in elements_b for one in register]
    results = []
    for number, before in enumerate(sums):
        rows = elements_a[number // 2 % mma.row_parts :: mma.row_parts]
        values = (build_constant(INT32, number % 2), before, *(one for row in rows for one in row), *columns)
        tile_product = ir.Warp(mma.accumulator_type, MATRIX_PRODUCT, values, asm.position)
        results.append(asm.declare(f"lockstep d{number}", mma.accumulator_type, tile_product))
    for number, target in enumerate(targets):
        pair = results[2 * number : 2 * number + 2]
        asm.store(target, asm.call("two_halves", pair) if mma.has_half_pairs else results[number])


def _lower_wgmma(asm: AssemblyStatement, instruction: Instruction) -> None:
    """Lower a `wgmma` instruction: a product, the end of a group of products, or the wait for groups."""
    match instruction.suffixes:
        case ("fence", "sync", "aligned"):
            _require_full_warp(asm)
            asm.emit(ir.Fence(VOID, "wgmma.fence", asm.position))
        case ("commit_group", "sync", "aligned"):
            _require_full_warp(asm)
            asm.emit(ir.AsyncCommit(VOID, "product"))
        case ("wait_group", "sync", "aligned"):
            _require_full_warp(asm)
            left = asm.value(instruction.operands[0], UINT64)
            asm.emit(ir.AsyncWait(VOID, left, "product"))
            # All lanes of a warp share the results that tensor cores computed for it.
            asm.emit(ir.Fence(VOID, "__syncwarp", asm.position))
        case _:
            wgmma = parse_warpgroup_product(instruction.suffixes)
            if wgmma is None or len(instruction.operands) < 4:
                raise asm.unsupported_error()
            _multiply_tiles(asm, instruction, wgmma)


def _multiply_tiles(asm: AssemblyStatement, instruction: Instruction, wgmma: WarpgroupInstruction) -> None:
    """Lower a product of tiles in shared memory: each warp computes its rows, 8 columns at a time."""
    target, operand_a, operand_b, accumulates, *flags = instruction.operands
    targets, in_registers = split_parts(target), operand_a.startswith("{")
    numbers = [asm.immediate(flag) for flag in flags]
    signs, transposed = numbers[:2], numbers[2:]
    tiles = 1 if in_registers else 2
    if (
        len(targets) != wgmma.columns // 2
        or (in_registers and len(split_parts(operand_a)) != _REGISTERS_OF_A)
        or len(transposed) != (tiles if wgmma.allows_transpose else 0)
        or not all(sign in (1, -1) for sign in signs)
        or not all(flag in (0, 1) for flag in transposed)
    ):
        raise asm.unsupported_error()
    transposes_a, transposes_b = ([0] * (2 - len(transposed)) + transposed) if wgmma.allows_transpose else (0, 0)
    _require_full_warp(asm)
    asm.emit(asm.call("warpgroup", []))
    condition = asm.declare("lockstep adds", BOOL, asm.value(accumulates, BOOL))
    if in_registers:
        rows = [
            _unpack(asm, wgmma.unpack, register, wgmma.elements_per_word, FLOAT32)
            for register in split_parts(operand_a)
        ]
    else:
        tile = _tile(asm, operand_a, "a", transposes_a)
        rows = [_load_tile_elements(asm, wgmma, tile, number % 2, number // 2) for number in range(4)]
    if signs[0] != signs[1]:
        rows = [tuple(ir.Unary(FLOAT32, "-", one) for one in register) for register in rows]
    tile = _tile(asm, operand_b, "b", transposes_b)
    _read_sums(asm, targets, condition)
    results = []
    for number, register in enumerate(targets):
        if number % 4 == 0:
            columns = [_load_tile_elements(asm, wgmma, tile, number // 4, half) for half in range(2)]
        before = ir.Select(FLOAT32, condition, asm.value(register, FLOAT32), build_constant(FLOAT32, 0))
        elements = [one for held in (*rows[number // 2 % 2 :: 2], *columns) for one in held]
        values = (build_constant(INT32, number % 2), before, *elements)
        tile_product = ir.Warp(FLOAT32, WARPGROUP_PRODUCT, values, asm.position)
        results.append(asm.declare(f"lockstep d{number}", FLOAT32, tile_product))
    for register, result in zip(targets, results, strict=True):
        asm.store(register, result)


def _read_sums(asm: AssemblyStatement, registers: list[str], accumulates: ir.Expression) -> None:
    """Read the accumulators if the product is added to them; otherwise they may be uninitialized."""
    read = [register for register in registers if register in asm.accumulators]
    if read:
        with asm.guard(accumulates):
            for register in read:
                local = asm.registers[register]
                assert isinstance(local, ir.Local)
                before = asm.reinterpret(asm.accumulators.pop(register), local.type)
                asm.emit(ir.Assign(local.type, local, before))


def _tile(asm: AssemblyStatement, text: str, factor: str, transposed: Any) -> _Tile:
    """Return a tile in shared memory, and the position in it where a lane's part begins."""
    tile = asm.declare("lockstep tile", UINT64, asm.value(text, UINT64))
    asm.emit(asm.call("wgmma_tile", [tile]))
    names = () if transposed else (f"first_{factor}", "stride", "far", "changing")
    parts = [asm.declare(f"lockstep {name}", UINT32, asm.call(f"wgmma_{name}", [tile])) for name in names]
    return _Tile(tile, factor, *parts)


def _load_tile_elements(
    asm: AssemblyStatement, wgmma: WarpgroupInstruction, tile: _Tile, part: int, half: int
) -> tuple[ir.Expression, ...]:
    """Load a lane's elements from 4 bytes of a line of a tile, or, if transposed, from as many lines."""
    unit = UINT16 if wgmma.elements_per_word > 1 else UINT32
    elements: list[ir.Expression] = []
    start: ir.Expression | None = None
    if tile.first is not None:
        offset = asm.declare("lockstep at", UINT32, tile.compute_byte_offset(part, half))
        swizzle = ir.Binary(UINT32, "&", ir.Binary(UINT32, ">>", offset, build_constant(INT32, 7)), tile.swizzle_bits)
        swizzled = ir.Binary(UINT32, "^", offset, ir.Binary(UINT32, "<<", swizzle, build_constant(INT32, 4)))
        pointer = ir.SharedAddress(Pointer(unit), swizzled, asm.position)
        start = asm.declare("lockstep place", pointer.type, pointer)
    for index in range(wgmma.elements_per_word):
        if start is None:
            numbers = [build_constant(UINT32, number) for number in (part, half, index)]
            arguments: list[str | ir.Expression] = [tile.descriptor, *numbers]
            address = asm.call(f"wgmma_{tile.factor}_turned", arguments)
        else:
            address = ir.Member(Pointer(unit), start, index * unit.size) if index else start
        element = ir.Load(unit, ir.Element(unit, address, None, asm.position, is_dereferenced=True), is_async=True)
        value: ir.Expression = ir.Intrinsic(FLOAT32, _FROM_HALF, (element,))
        if wgmma.unpack != "half_at":
            value = asm.call(wgmma.unpack, [asm.reinterpret(element, UINT32), build_constant(UINT32, 0)])
        elements.append(asm.declare(f"lockstep {tile.factor}", FLOAT32, value))
    return tuple(elements)


def _unpack(
    asm: AssemblyStatement, function: str, register: str, count: int, type: Scalar
) -> tuple[ir.Expression, ...]:
    """Return the elements that a register holds, in the type in which they are multiplied."""
    if not function:
        return (asm.value(register, type),)
    register_value = asm.value(register, UINT32)
    return tuple(
        asm.declare(f"lockstep {register}.{position}", type, asm.call(function, [register_value, index]))
        for position, index in enumerate(build_constant(UINT32, position) for position in range(count))
    )


def _lower_ldmatrix(asm: AssemblyStatement, instruction: Instruction) -> None:
    target, address = instruction.operands
    place, targets = _matrix_rows(asm, instruction, address, split_parts(target))
    function = "ldmatrix_trans" if "trans" in instruction.suffixes else "ldmatrix"
    # All are read before any is written, since the address may be in a register that is overwritten.
    registers_read = [
        asm.declare(f"lockstep m{number}", UINT32, asm.call(function, [place, build_constant(UINT32, number)]))
        for number in range(len(targets))
    ]
    for register, value in zip(targets, registers_read, strict=True):
        asm.store(register, value)


def _lower_stmatrix(asm: AssemblyStatement, instruction: Instruction) -> None:
    address, source = instruction.operands
    place, sources = _matrix_rows(asm, instruction, address, split_parts(source))
    function = "stmatrix_trans" if "trans" in instruction.suffixes else "stmatrix"
    for number, register in enumerate(sources):
        arguments = [place, build_constant(UINT32, number), asm.value(register, UINT32)]
        asm.emit(asm.call(function, arguments))


def _matrix_rows(
    asm: AssemblyStatement, instruction: Instruction, address: str, registers: list[str]
) -> tuple[ir.Expression, list[str]]:
    """Return the address that a lane provides for the rows of 8x8 matrices, and each matrix's register."""
    if (
        "m8n8" not in instruction.suffixes
        or "b16" not in instruction.suffixes
        or f"x{len(registers)}" not in instruction.suffixes
    ):
        raise asm.unsupported_error()
    _require_full_warp(asm)
    place = asm.place(address, UINT8)
    return asm.declare("lockstep row", UINT64, ir.Cast(UINT64, place.pointer)), registers


def _require_full_warp(asm: AssemblyStatement) -> None:
    asm.emit(ir.Warp(INT32, FULL_WARP_SYNC, (), asm.position))


LOWERINGS: Lowerings = {
    "mma": _lower_mma,
    "wgmma": _lower_wgmma,
    "ldmatrix": _lower_ldmatrix,
    "stmatrix": _lower_stmatrix,
}
