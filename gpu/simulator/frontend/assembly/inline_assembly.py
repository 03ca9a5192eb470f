"""`asm` statements: lower PTX instructions to IR nodes, or to calls of the shim's functions for them."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpu.simulator import ir
from gpu.simulator.frontend.assembly import parsing
from gpu.simulator.frontend.assembly.matrix_instructions import (
    WarpgroupInstruction,
    parse_matrix_product,
    parse_warpgroup_product,
)
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, get_reported_position
from gpu.simulator.frontend.lowering.conversions import build_constant, convert
from gpu.simulator.frontend.lowering.cuda_functions import build_cluster_barrier, build_phase_operation
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.types import build_unsupported_error
from gpu.simulator.ir.intrinsics import FULL_WARP_SYNC, MATRIX_PRODUCT, WARPGROUP_PRODUCT
from gpu.simulator.types import BOOL, INT32, INT64, VOID, Pointer, Scalar, Type

_UINT8, _UINT16, _UINT32, _UINT64 = (Scalar(f"uint{bits}") for bits in (8, 16, 32, 64))
_FLOAT32, _FLOAT64 = Scalar("float32"), Scalar("float64")
_KINDS = {"u": "uint", "b": "uint", "s": "int", "f": "float"}
_CONSTRAINT_TYPES = {"h": Scalar("uint16"), "r": _UINT32, "l": _UINT64, "f": _FLOAT32, "d": _FLOAT64}
_COMPARES = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
_SHUFFLES = {"idx": "__shfl_sync", "up": "__shfl_up_sync", "down": "__shfl_down_sync", "bfly": "__shfl_xor_sync"}
_ATOMICS = frozenset(("add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas"))
_ROUNDINGS = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_WITHOUT_EFFECT = frozenset(
    ("prefetch", "prefetchu", "discard", "applypriority", "nanosleep", "pmevent", "griddepcontrol", "setmaxnreg")
)
_FENCES = {"cta": "__threadfence_block", "cluster": "__threadfence_cluster", "sys": "__threadfence_system"}
_SCOPES: dict[str, ir.Scope] = {"cta": "block", "cluster": "cluster", "gpu": "device", "sys": "system"}
_ORDERS: tuple[ir.MemoryOrder, ...] = ("volatile", "relaxed", "acquire", "release", "acq_rel")
_AXES = ("x", "y", "z")
_BARRIER_VOTES = {"popc": "__syncthreads_count", "and": "__syncthreads_and", "or": "__syncthreads_or"}
_SPECIAL = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
_BITS: dict[tuple[str, str], str] = {
    ("float32", "i"): "__float_as_int",
    ("float32", "u"): "__float_as_uint",
    ("float64", "i"): "__double_as_longlong",
    ("float64", "u"): "__double_as_longlong",
}
_REGISTERS_OF_A = 4
_FROM_HALF = "__lockstep_from_half"
_ADVICE = "Use the intrinsic for it, such as __ldg, __popc or __shfl_sync."


def lower_assembly(lower: Lowering, cursor: Cursor) -> list[ir.Statement]:
    """Lower an `asm` statement: read the operands, execute all instructions, then write the outputs."""
    definition = lower.scope.definition
    asm_statements = parsing.parse_asm_statements(definition.printed_text)
    asm_cursors = [descendant for descendant in definition.descendants() if descendant.kind == CursorKind.ASM_STMT]
    indices = [number for number, asm_cursor in enumerate(asm_cursors) if asm_cursor.has_same_location(cursor)]
    if len(asm_statements) != len(asm_cursors) or not indices:
        raise build_unsupported_error(cursor, "this asm statement", advice=_ADVICE)
    asm_statement = asm_statements[indices[0]]
    if len({asm_statements[index] for index in indices}) > 1:
        raise build_unsupported_error(cursor, "several asm statements of one macro", advice=_ADVICE)
    parsed = parsing.parse_instructions(asm_statement.template)
    if parsed is None:
        raise build_unsupported_error(cursor, "a jump or invalid PTX in asm", advice=_ADVICE)
    return _Assembly(lower, cursor).lower_instructions(parsed, asm_statement.constraints) if parsed else []


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
    stride: ir.Expression = field(default_factory=lambda: build_constant(_UINT32, 0))
    half_stride: ir.Expression = field(default_factory=lambda: build_constant(_UINT32, 0))
    swizzle_bits: ir.Expression = field(default_factory=lambda: build_constant(_UINT32, 0))

    def compute_byte_offset(self, part: int, half: int) -> ir.Expression:
        """Return the byte offset of a half of a line, `part` times 8 lines further on, before swizzling."""
        assert self.first is not None
        offset = self.first
        for count, distance in ((part, self.stride), (half, self.half_stride)):
            if count:
                offset = ir.Binary(
                    _UINT32, "+", offset, ir.Binary(_UINT32, "*", distance, build_constant(_UINT32, count))
                )
        return offset


@dataclass
class _Assembly:
    """The registers and the lowered statements of one `asm` statement."""

    lower: Lowering
    cursor: Cursor
    registers: dict[str, ir.Expression] = field(default_factory=dict)
    statements: list[ir.Statement] = field(default_factory=list)
    accumulators: dict[str, ir.Expression] = field(default_factory=dict)
    """Initial values of the accumulators, which are read only where a product is added to them."""

    _instruction: parsing.Instruction = field(init=False)
    """The instruction that is being lowered."""

    def __post_init__(self) -> None:
        self._position = get_reported_position(self.cursor)

    def lower_instructions(self, parsed: list[parsing.Instruction], constraints: tuple[str, ...]) -> list[ir.Statement]:
        outputs: list[tuple[ir.Place, ir.Local]] = []
        sums = _find_accumulators(parsed)
        # Explicitly named clobbers have no expressions.
        for number, (constraint, operand) in enumerate(zip(constraints, self.cursor.children, strict=False)):
            name = f"%{number}"
            if constraint[0] in "=+":
                place = self.lower.place(operand)
                if place is None:
                    raise build_unsupported_error(operand, "this output operand of asm")
                if isinstance(place, ir.Element) and name in sums and constraint[0] == "+":
                    place = replace(place, is_accumulator=True)
                register_type = place.type if isinstance(place.type, Scalar | Pointer) else _CONSTRAINT_TYPES["r"]
                initial: ir.Expression | None = None
                if isinstance(place, ir.Element) and place.is_accumulator:
                    initial = ir.Load(place.type, place)
                elif constraint[0] == "+":
                    initial = self.lower.value(operand)
                if initial is not None and name in sums:
                    self.accumulators[name], initial = initial, None
                outputs.append((place, self._declare(name, register_type, initial)))
                continue
            value = self.lower.value(operand)
            self.registers[name] = value if isinstance(value, ir.Const) else self._declare(name, value.type, value)
        for each in parsed:
            self._instruction = each
            if each.operation == ".reg":
                for name in each.operands:
                    self._declare(name, self._type(each.types[0]), None)
                continue
            self._lower_guarded(each)
        for place, local in outputs:
            self._emit(ir.Assign(place.type, place, local))
        return [ir.Block(tuple(self.statements))]

    def _declare(self, name: str, type: Type, value: ir.Expression | None) -> ir.Local:
        local = ir.Local(type, self.lower.scope.new_slot(), name)
        self.registers[name] = local
        self.statements.append(ir.Declare(local.slot, type, value, self._position, name))
        return local

    def _emit(self, expression: ir.Expression) -> None:
        self.statements.append(ir.Evaluate(expression, self._position))

    def _lower_guarded(self, instruction: parsing.Instruction) -> None:
        if not instruction.guard:
            self._lower_instruction(instruction)
            return
        condition = self._value(instruction.guard, BOOL)
        enclosing, self.statements = self.statements, []
        self._lower_instruction(instruction)
        inner, self.statements = self.statements, enclosing
        if instruction.is_negated:
            condition = ir.Unary(BOOL, "!", condition)
        self.statements.append(ir.If(condition, ir.Block(tuple(inner)), None, self._position))

    def _lower_instruction(self, instruction: parsing.Instruction) -> None:
        special = getattr(self, f"_do_{instruction.operation}", None)
        if special is not None:
            special(instruction)
        elif instruction.operation not in _WITHOUT_EFFECT:
            self._lower_by_name(instruction)

    def _lower_by_name(self, instruction: parsing.Instruction) -> None:
        """Lower an instruction to a call of the shim's function for it."""
        target, *operands = instruction.operands or ("",)
        name = "_".join((instruction.operation, *instruction.modifiers, *instruction.types))
        self._store(target, self._call(name, operands))

    def _call(self, name: str, operands: Sequence[str | ir.Expression]) -> ir.Expression:
        try:
            callee = self.lower.scope.unit.find_header_function(f"__lockstep_ptx_{name}")
        except StopIteration:
            raise self._unsupported_error() from None
        function = self.lower.scope.add_call(callee, self._position)
        if len(operands) != len(function.parameters):
            raise self._unsupported_error()
        values = tuple(
            self._value(operand, type) if isinstance(operand, str) else self._reinterpret(operand, type)
            for operand, (_, type) in zip(operands, function.parameters, strict=True)
        )
        return ir.Call(function.type, function, values, self._position)

    def _unsupported_error(self) -> Exception:
        return build_unsupported_error(self.cursor, f"the instruction {self._instruction}", advice=_ADVICE)

    def _type(self, name: str) -> Scalar:
        if name == "pred":
            return BOOL
        if not re.fullmatch(r"[usb](8|16|32|64)|f(32|64)", name):
            raise self._unsupported_error()
        return Scalar(f"{_KINDS[name[0]]}{name[1:]}")

    # Operands

    def _value(self, text: str, type: Type) -> ir.Expression:
        """Return an operand as a value of a type; a register's bits are reinterpreted."""
        if text in self.registers:
            return self._reinterpret(self.registers[text], type)
        if text.startswith("!") and text[1:].strip() in self.registers:
            return ir.Unary(BOOL, "!", self._value(text[1:].strip(), BOOL))
        if text.startswith(("%", "$")):  # "$" replaces a single "%" before the name
            return self._reinterpret(self._special(text.lstrip("%$")), type)
        number = _parse_number(text)
        if number is None or not isinstance(type, Scalar):
            raise self._unsupported_error()
        if isinstance(number, int):
            bits = number & ((1 << 8 * type.size) - 1)
            if type.is_float:
                return build_constant(type, number)
            return build_constant(
                type, bits - (1 << 8 * type.size) if type.is_signed and bits >> (8 * type.size - 1) else bits
            )
        return build_constant(type, number)

    def _special(self, name: str) -> ir.Expression:
        word, _, axis = name.partition(".")
        if word in _SPECIAL and axis in _AXES:
            return ir.Special(_UINT32, _SPECIAL[word], _AXES.index(axis))
        if word in ("clock", "clock64", "globaltimer"):
            return ir.Clock(INT64)
        return self._call(name.replace(".", "_"), [])

    def _reinterpret(self, value: ir.Expression, type: Type) -> ir.Expression:
        if isinstance(type, Pointer):
            return ir.Cast(type, value)
        assert isinstance(type, Scalar)
        if isinstance(value.type, Pointer):
            value = ir.Cast(INT64, value)
        assert isinstance(value.type, Scalar)
        if value.type.is_float and not type.is_float and type != BOOL:
            name = _BITS[value.type.name, "i" if type.is_signed else "u"]
            bits = INT64 if value.type.size == 8 else INT32 if type.is_signed else _UINT32
            return convert(ir.Intrinsic(bits, name, (value,)), type, self.cursor)
        if type.is_float and not value.type.is_float:
            name, bits = ("__longlong_as_double", INT64) if type.size == 8 else ("__uint_as_float", _UINT32)
            return ir.Intrinsic(type, name, (convert(value, bits, self.cursor),))
        return convert(value, type, self.cursor)

    def _store(self, target: str, value: ir.Expression) -> None:
        if target == "_":
            self._emit(value)
            return
        local = self.registers.get(target)
        if not isinstance(local, ir.Local):
            raise self._unsupported_error()
        self._emit(ir.Assign(local.type, local, self._reinterpret(value, local.type)))

    def _place(self, text: str, type: Scalar, offset: int = 0, *, suffixes: Sequence[str] | None = None) -> ir.Element:
        """Return the element at an address; `suffixes` replace those of the instruction."""
        suffixes = self._instruction.suffixes if suffixes is None else suffixes
        match = re.fullmatch(r"\[\s*([\w$%]+)\s*(?:\+\s*(-?\w+)\s*)?\]", text)
        number = _parse_number(match[2] or "0") if match is not None else None
        if match is None or not isinstance(number, int) or match[1] not in self.registers:
            raise self._unsupported_error()
        base = self.registers[match[1]]
        pointer: ir.Expression = ir.Cast(Pointer(type), base)
        if isinstance(base.type, Scalar) and any(word.startswith("shared") for word in suffixes):
            pointer = ir.SharedAddress(Pointer(type), base, self._position)
        elif isinstance(base.type, Scalar) and base.type.size < 8:
            raise build_unsupported_error(
                self.cursor, "a 32-bit address in asm", advice='Pass the pointer itself: "l"(p).'
            )
        if number + offset:
            pointer = ir.Member(Pointer(type), pointer, number + offset)
        order = _find_order(suffixes)
        return ir.Element(
            type,
            pointer,
            None,
            self._position,
            volatile=order is not None,
            is_dereferenced=True,
            order=order,
            scope="system" if order == "volatile" else _find_scope(suffixes, "system"),
            is_read_only="nc" in suffixes,
        )

    def _split_parts(self, text: str) -> list[str]:
        return [part.strip() for part in text.strip("{} ").split(",")]

    # Instructions that are not function calls

    def _do_mov(self, instruction: parsing.Instruction) -> None:
        target, source = instruction.operands
        type = self._type(instruction.types[-1])
        if source.startswith("{"):
            parts = self._split_parts(source)
            narrow = Scalar(f"uint{8 * type.size // len(parts)}")
            combined: ir.Expression = build_constant(type, 0)
            for index, part in enumerate(parts):
                value = convert(self._value(part, narrow), type, self.cursor)
                shift = build_constant(INT32, index * 8 * narrow.size)
                combined = ir.Binary(type, "|", combined, ir.Binary(type, "<<", value, shift))
            self._store(target, combined)
        elif target.startswith("{"):
            parts = self._split_parts(target)
            narrow = Scalar(f"uint{8 * type.size // len(parts)}")
            for index, part in enumerate(parts):
                shift = build_constant(INT32, index * 8 * narrow.size)
                value = ir.Binary(type, ">>", self._value(source, type), shift)
                self._store(part, convert(value, narrow, self.cursor))
        else:
            register = self.registers.get(source)
            keeps_pointer = register is not None and isinstance(register.type, Pointer) and type.size == 8
            self._store(target, register if keeps_pointer and register is not None else self._value(source, type))

    def _do_cvta(self, instruction: parsing.Instruction) -> None:
        if not any(word.startswith("shared") for word in instruction.suffixes):
            self._do_mov(instruction)
            return
        target, source = instruction.operands
        type = self._type(instruction.types[-1])
        if "to" in instruction.modifiers:
            pointer = self.registers.get(source)
            if pointer is None:
                raise self._unsupported_error()
            if not isinstance(pointer.type, Pointer):
                pointer = ir.Cast(Pointer(_UINT8), pointer)
            self._store(target, ir.SharedAddress(type, pointer, self._position))
        else:
            number = self._value(source, type)
            self._store(target, ir.SharedAddress(Pointer(_UINT8), number, self._position))

    def _do_setp(self, instruction: parsing.Instruction) -> None:
        target, left, right, *extra_predicate = instruction.operands
        type = self._type(instruction.types[-1])
        compare, *combine = instruction.modifiers
        if compare not in _COMPARES or len(combine) != len(extra_predicate) or len(extra_predicate) > 1:
            raise self._unsupported_error()
        result: ir.Expression = ir.Binary(BOOL, _COMPARES[compare], self._value(left, type), self._value(right, type))
        if extra_predicate:
            result = self._call(f"{combine[0]}_pred", [result, self._value(extra_predicate[0], BOOL)])
        first, _, other = target.partition("|")
        self._store(first.strip(), result)
        if other and not extra_predicate:
            self._store(other.strip(), ir.Unary(BOOL, "!", self._value(first.strip(), BOOL)))
        elif other:
            raise self._unsupported_error()

    def _do_selp(self, instruction: parsing.Instruction) -> None:
        target, chosen, other, condition = instruction.operands
        type = self._type(instruction.types[-1])
        values = self._value(chosen, type), self._value(other, type)
        self._store(target, ir.Select(type, self._value(condition, BOOL), *values))

    def _do_cvt(self, instruction: parsing.Instruction) -> None:
        target, source = instruction.operands
        if instruction.suffixes == ("rna", "tf32", "f32"):
            self._store(target, self._call("to_tf32", [source]))
            return
        target_type, source_type = (self._type(name) for name in instruction.types)
        rounding = [word for word in instruction.modifiers if word in _ROUNDINGS]
        if set(instruction.modifiers) - {*_ROUNDINGS, "rz", "to", "space"} or "rz" in instruction.modifiers:
            raise self._unsupported_error()
        value = self._value(source, source_type)
        if rounding and source_type.is_float:
            value = ir.Intrinsic(
                source_type, _ROUNDINGS[rounding[0]] + ("f" if source_type.size == 4 else ""), (value,)
            )
        self._store(target, convert(value, target_type, self.cursor))

    def _do_ld(self, instruction: parsing.Instruction) -> None:
        target, address = instruction.operands
        type = self._type(instruction.types[-1])
        parts = self._split_parts(target) if target.startswith("{") else [target]
        for number, part in enumerate(parts):
            place = self._place(address, type, number * type.size)
            self._store(part, ir.Load(type, place))

    _do_ldu = _do_ld

    def _do_st(self, instruction: parsing.Instruction) -> None:
        address, source, *barrier = instruction.operands
        type = self._type(instruction.types[-1])
        parts = self._split_parts(source) if source.startswith("{") else [source]
        for number, part in enumerate(parts):
            place = self._place(address, type, number * type.size)
            self._emit(ir.Assign(type, place, self._value(part, type)))
        if "async" in instruction.suffixes and len(barrier) == 1:
            # The store completes at once, which is allowed, and signals its barrier.
            byte_count = build_constant(_UINT32, type.size * len(parts))
            completion = build_phase_operation(
                self.lower, "complete", self._barrier(barrier[0]), byte_count, self._position
            )
            self._emit(completion)
        elif "async" in instruction.suffixes or barrier:
            raise self._unsupported_error()

    def _do_red(self, instruction: parsing.Instruction) -> None:
        self._emit(self._atomic(instruction, instruction.operands, used=False))

    def _do_atom(self, instruction: parsing.Instruction) -> None:
        target, *operands = instruction.operands
        self._store(target, self._atomic(instruction, operands, used=True))

    def _atomic(self, instruction: parsing.Instruction, operands: Any, *, used: bool) -> ir.Expression:
        address, *values = operands
        op = instruction.modifiers[0] if instruction.modifiers else ""
        if op not in _ATOMICS or len(values) != (2 if op == "cas" else 1):
            raise self._unsupported_error()
        type = self._type(instruction.types[-1])
        arguments = tuple(self._value(value, type) for value in values)
        place = self._place(address, type)
        scope, order = _find_scope(instruction.suffixes, "device"), _find_order(instruction.suffixes) or "relaxed"
        return ir.Atomic(type, op, place, arguments, used, scope, order)

    def _warp(self, target: str, type: Scalar, op: str, values: tuple[ir.Expression, ...]) -> None:
        self._store(target, ir.Warp(type, op, values, self._position))

    def _do_shfl(self, instruction: parsing.Instruction) -> None:
        target, source, distance, clamp_operand, *mask = instruction.operands
        kind = instruction.modifiers[-1] if instruction.modifiers else ""
        clamp = self._value(clamp_operand, INT32)
        if kind not in _SHUFFLES or not mask or "|" in target or not isinstance(clamp, ir.Const):
            raise self._unsupported_error()
        width = 32 - (int(clamp.value) >> 8 & 31)
        values = (
            self._value(mask[0], _UINT32),
            self._value(source, _UINT32),
            self._value(distance, _UINT32 if kind in ("up", "down") else INT32),
            build_constant(INT32, width),
        )
        self._warp(target, _UINT32, _SHUFFLES[kind], values)

    def _do_vote(self, instruction: parsing.Instruction) -> None:
        target, predicate, *mask = instruction.operands
        kind = instruction.modifiers[-1] if instruction.modifiers else ""
        if kind not in ("ballot", "any", "all") or not mask:
            raise self._unsupported_error()
        vote_value = convert(self._value(predicate, BOOL), INT32, self.cursor)
        values = (self._value(mask[0], _UINT32), vote_value)
        type = _UINT32 if kind == "ballot" else INT32
        vote: ir.Expression = ir.Warp(type, f"__{kind}_sync", values, self._position)
        if kind != "ballot":
            vote = ir.Binary(BOOL, "!=", vote, build_constant(INT32, 0))
        self._store(target, vote)

    def _do_match(self, instruction: parsing.Instruction) -> None:
        target, value, mask = instruction.operands
        if instruction.modifiers != ("any",):
            raise self._unsupported_error()
        type = self._type(instruction.types[-1])
        values = (self._value(mask, _UINT32), self._value(value, type))
        self._warp(target, _UINT32, "__match_any_sync", values)

    def _do_redux(self, instruction: parsing.Instruction) -> None:
        target, value, mask = instruction.operands
        type = self._type(instruction.types[-1])
        values = (self._value(mask, _UINT32), self._value(value, type))
        self._warp(target, type, f"__reduce_{instruction.modifiers[0]}_sync", values)

    def _require_full_warp(self) -> None:
        self._emit(ir.Warp(INT32, FULL_WARP_SYNC, (), self._position))

    def _do_mma(self, instruction: parsing.Instruction) -> None:
        """Lower a product of tiles, one result after another; registers are unpacked once."""
        mma = parse_matrix_product(instruction.suffixes)
        if mma is None or len(instruction.operands) != 4:
            raise self._unsupported_error()
        targets, *factors = (self._split_parts(operand) for operand in instruction.operands)
        if [len(targets), *map(len, factors)] != [mma.c, mma.a, mma.b, mma.c]:
            raise self._unsupported_error()
        self._require_full_warp()
        elements_a, elements_b = (
            [self._unpack(unpack, register, mma.elements_per_register, mma.accumulator_type) for register in registers]
            for unpack, registers in ((mma.unpack_a, factors[0]), (mma.unpack_b, factors[1]))
        )
        unpack, values_per_register = ("half_at", 2) if mma.has_half_pairs else ("", 1)
        elements_c = [
            self._unpack(unpack, register, values_per_register, mma.accumulator_type) for register in factors[2]
        ]
        sums = [one for register in elements_c for one in register]
        columns = [one for register in elements_b for one in register]
        results = []
        for number, before in enumerate(sums):
            rows = elements_a[number // 2 % mma.row_parts :: mma.row_parts]
            values = (build_constant(INT32, number % 2), before, *(one for row in rows for one in row), *columns)
            tile_product = ir.Warp(mma.accumulator_type, MATRIX_PRODUCT, values, self._position)
            results.append(self._declare(f"lockstep d{number}", mma.accumulator_type, tile_product))
        for number, target in enumerate(targets):
            pair = results[2 * number : 2 * number + 2]
            self._store(target, self._call("two_halves", pair) if mma.has_half_pairs else results[number])

    def _do_wgmma(self, instruction: parsing.Instruction) -> None:
        """Lower a `wgmma` instruction: a product, the end of a group of products, or the wait for groups."""
        match instruction.suffixes:
            case ("fence", "sync", "aligned"):
                self._require_full_warp()
                self._emit(ir.Fence(VOID, "wgmma.fence", self._position))
            case ("commit_group", "sync", "aligned"):
                self._require_full_warp()
                self._emit(ir.AsyncCommit(VOID, "product"))
            case ("wait_group", "sync", "aligned"):
                self._require_full_warp()
                left = self._value(instruction.operands[0], _UINT64)
                self._emit(ir.AsyncWait(VOID, left, "product"))
                # All lanes of a warp share the results that tensor cores computed for it.
                self._emit(ir.Fence(VOID, "__syncwarp", self._position))
            case _:
                wgmma = parse_warpgroup_product(instruction.suffixes)
                if wgmma is None or len(instruction.operands) < 4:
                    raise self._unsupported_error()
                self._multiply_tiles(instruction, wgmma)

    def _multiply_tiles(self, instruction: parsing.Instruction, wgmma: WarpgroupInstruction) -> None:
        """Lower a product of tiles in shared memory: each warp computes its rows, 8 columns at a time."""
        target, operand_a, operand_b, accumulates, *flags = instruction.operands
        targets, in_registers = self._split_parts(target), operand_a.startswith("{")
        numbers = [self._immediate(flag) for flag in flags]
        signs, transposed = numbers[:2], numbers[2:]
        tiles = 1 if in_registers else 2
        if (
            len(targets) != wgmma.columns // 2
            or (in_registers and len(self._split_parts(operand_a)) != _REGISTERS_OF_A)
            or len(transposed) != (tiles if wgmma.allows_transpose else 0)
            or not all(sign in (1, -1) for sign in signs)
            or not all(flag in (0, 1) for flag in transposed)
        ):
            raise self._unsupported_error()
        transposes_a, transposes_b = ([0] * (2 - len(transposed)) + transposed) if wgmma.allows_transpose else (0, 0)
        self._require_full_warp()
        self._emit(self._call("warpgroup", []))
        condition = self._declare("lockstep adds", BOOL, self._value(accumulates, BOOL))
        if in_registers:
            rows = [
                self._unpack(wgmma.unpack, register, wgmma.elements_per_word, _FLOAT32)
                for register in self._split_parts(operand_a)
            ]
        else:
            tile = self._tile(operand_a, "a", transposes_a)
            rows = [self._load_tile_elements(wgmma, tile, number % 2, number // 2) for number in range(4)]
        if signs[0] != signs[1]:
            rows = [tuple(ir.Unary(_FLOAT32, "-", one) for one in register) for register in rows]
        tile = self._tile(operand_b, "b", transposes_b)
        self._read_sums(targets, condition)
        results = []
        for number, register in enumerate(targets):
            if number % 4 == 0:
                columns = [self._load_tile_elements(wgmma, tile, number // 4, half) for half in range(2)]
            before = ir.Select(_FLOAT32, condition, self._value(register, _FLOAT32), build_constant(_FLOAT32, 0))
            elements = [one for held in (*rows[number // 2 % 2 :: 2], *columns) for one in held]
            values = (build_constant(INT32, number % 2), before, *elements)
            tile_product = ir.Warp(_FLOAT32, WARPGROUP_PRODUCT, values, self._position)
            results.append(self._declare(f"lockstep d{number}", _FLOAT32, tile_product))
        for register, result in zip(targets, results, strict=True):
            self._store(register, result)

    def _immediate(self, text: str) -> int | float | None:
        """Return an immediate operand, or a constant that is passed in as one."""
        register = self.registers.get(text)
        return int(register.value) if isinstance(register, ir.Const) else _parse_number(text)

    def _read_sums(self, registers: list[str], accumulates: ir.Expression) -> None:
        """Read the accumulators if the product is added to them; otherwise they may be uninitialized."""
        enclosing, self.statements = self.statements, []
        for register in registers:
            if register in self.accumulators:
                local = self.registers[register]
                assert isinstance(local, ir.Local)
                before = self._reinterpret(self.accumulators.pop(register), local.type)
                self._emit(ir.Assign(local.type, local, before))
        inner, self.statements = self.statements, enclosing
        if inner:
            self.statements.append(ir.If(accumulates, ir.Block(tuple(inner)), None, self._position))

    def _tile(self, text: str, factor: str, transposed: Any) -> _Tile:
        """Return a tile in shared memory, and the position in it where a lane's part begins."""
        tile = self._declare("lockstep tile", _UINT64, self._value(text, _UINT64))
        self._emit(self._call("wgmma_tile", [tile]))
        names = () if transposed else (f"first_{factor}", "stride", "far", "changing")
        parts = [self._declare(f"lockstep {name}", _UINT32, self._call(f"wgmma_{name}", [tile])) for name in names]
        return _Tile(tile, factor, *parts)

    def _load_tile_elements(
        self, wgmma: WarpgroupInstruction, tile: _Tile, part: int, half: int
    ) -> tuple[ir.Expression, ...]:
        """Load a lane's elements from 4 bytes of a line of a tile, or, if transposed, from as many lines."""
        unit = _UINT16 if wgmma.elements_per_word > 1 else _UINT32
        elements: list[ir.Expression] = []
        start: ir.Expression | None = None
        if tile.first is not None:
            offset = self._declare("lockstep at", _UINT32, tile.compute_byte_offset(part, half))
            swizzle = ir.Binary(
                _UINT32, "&", ir.Binary(_UINT32, ">>", offset, build_constant(INT32, 7)), tile.swizzle_bits
            )
            swizzled = ir.Binary(_UINT32, "^", offset, ir.Binary(_UINT32, "<<", swizzle, build_constant(INT32, 4)))
            pointer = ir.SharedAddress(Pointer(unit), swizzled, self._position)
            start = self._declare("lockstep place", pointer.type, pointer)
        for index in range(wgmma.elements_per_word):
            if start is None:
                numbers = [build_constant(_UINT32, number) for number in (part, half, index)]
                arguments: list[str | ir.Expression] = [tile.descriptor, *numbers]
                address = self._call(f"wgmma_{tile.factor}_turned", arguments)
            else:
                address = ir.Member(Pointer(unit), start, index * unit.size) if index else start
            element = ir.Load(
                unit, ir.Element(unit, address, None, self._position, is_dereferenced=True), is_async=True
            )
            value: ir.Expression = ir.Intrinsic(_FLOAT32, _FROM_HALF, (element,))
            if wgmma.unpack != "half_at":
                value = self._call(wgmma.unpack, [self._reinterpret(element, _UINT32), build_constant(_UINT32, 0)])
            elements.append(self._declare(f"lockstep {tile.factor}", _FLOAT32, value))
        return tuple(elements)

    def _unpack(self, function: str, register: str, count: int, type: Scalar) -> tuple[ir.Expression, ...]:
        """Return the elements that a register holds, in the type in which they are multiplied."""
        if not function:
            return (self._value(register, type),)
        register_value = self._value(register, _UINT32)
        return tuple(
            self._declare(f"lockstep {register}.{position}", type, self._call(function, [register_value, index]))
            for position, index in enumerate(build_constant(_UINT32, position) for position in range(count))
        )

    def _do_ldmatrix(self, instruction: parsing.Instruction) -> None:
        target, address = instruction.operands
        place, targets = self._matrix_rows(instruction, address, self._split_parts(target))
        function = "ldmatrix_trans" if "trans" in instruction.suffixes else "ldmatrix"
        # All are read before any is written, since the address may be in a register that is overwritten.
        registers_read = [
            self._declare(
                f"lockstep m{number}", _UINT32, self._call(function, [place, build_constant(_UINT32, number)])
            )
            for number in range(len(targets))
        ]
        for register, value in zip(targets, registers_read, strict=True):
            self._store(register, value)

    def _do_stmatrix(self, instruction: parsing.Instruction) -> None:
        address, source = instruction.operands
        place, sources = self._matrix_rows(instruction, address, self._split_parts(source))
        function = "stmatrix_trans" if "trans" in instruction.suffixes else "stmatrix"
        for number, register in enumerate(sources):
            arguments = [place, build_constant(_UINT32, number), self._value(register, _UINT32)]
            self._emit(self._call(function, arguments))

    def _matrix_rows(
        self, instruction: parsing.Instruction, address: str, registers: list[str]
    ) -> tuple[ir.Expression, list[str]]:
        """Return the address that a lane provides for the rows of 8x8 matrices, and each matrix's register."""
        if (
            "m8n8" not in instruction.suffixes
            or "b16" not in instruction.suffixes
            or f"x{len(registers)}" not in instruction.suffixes
        ):
            raise self._unsupported_error()
        self._require_full_warp()
        place = self._place(address, _UINT8)
        return self._declare("lockstep row", _UINT64, ir.Cast(_UINT64, place.pointer)), registers

    def _do_cp(self, instruction: parsing.Instruction) -> None:
        """Lower an asynchronous copy, or the wait for such copies."""
        match instruction.suffixes:
            case ("async", "mbarrier", "arrive", *rest):
                pointer, adds_arrival = self._barrier(instruction.operands[0]), int("noinc" not in rest)
                count = build_constant(_UINT32, adds_arrival)
                self._emit(build_phase_operation(self.lower, "bind", pointer, count, self._position))
            case ("async", "bulk", "commit_group"):
                self._emit(ir.AsyncCommit(VOID, "bulk"))
            case ("async", "bulk", "wait_group", *_):
                left = self._value(instruction.operands[0], _UINT64)
                self._emit(ir.AsyncWait(VOID, left, "bulk"))
            case ("async", "bulk", "tensor", "2d", "shared::cluster" | "shared::cta", "global", *rest) if _is_tile(
                rest
            ):
                self._lower_tensor_copy(instruction)
            case ("async", "bulk", "shared::cluster" | "shared::cta", "global", *_):
                to, source, size, barrier, *_ = instruction.operands
                self._lower_bulk_copy(self._barrier(to), self._pointer(source), size, barrier)
            case ("async", "bulk", "global", "shared::cta", *_):
                to, source, size, *_ = instruction.operands
                self._lower_bulk_copy(self._pointer(to), self._barrier(source), size, "")
            case ("async", "commit_group"):
                self._emit(ir.AsyncCommit(VOID))
            case ("async", "wait_all"):
                self._emit(ir.AsyncWait(VOID, None))
            case ("async", "wait_group"):
                left = self._value(instruction.operands[0], _UINT64)
                self._emit(ir.AsyncWait(VOID, left))
            case ("async", "ca" | "cg", "shared" | "shared::cta", "global", *_):
                to, source, size, *source_size = instruction.operands
                self._emit(
                    ir.AsyncCopy(
                        VOID,
                        self._barrier(to),
                        self._pointer(source),
                        self._value(size, _UINT64),
                        self._value(source_size[0], _UINT64) if source_size else None,
                        self._position,
                    )
                )
            case _:
                raise self._unsupported_error()

    def _lower_bulk_copy(self, to: ir.Expression, source: ir.Expression, size: str, barrier: str) -> None:
        waits = self._barrier(barrier) if barrier else None
        self.lower.scope.function.has_phases |= bool(barrier)
        copy = ir.BulkCopy(VOID, to, source, self._value(size, _UINT32), waits, self._position)
        self._emit(copy)

    def _lower_tensor_copy(self, instruction: parsing.Instruction) -> None:
        """Lower a copy of a tensor map's box to shared memory, of this block or of several blocks of the cluster."""
        is_multicast = "multicast::cluster" in instruction.suffixes
        if len(instruction.operands) != (4 if is_multicast else 3):
            raise self._unsupported_error()
        to, source, barrier, *block_mask = instruction.operands
        operands = re.fullmatch(r"\[\s*([^,\s]+)\s*,\s*\{\s*([^,\s]+)\s*,\s*([^,\s]+)\s*\}\s*\]", source)
        if operands is None:
            raise self._unsupported_error()
        map_pointer = self._place(f"[{operands[1]}]", _UINT64, suffixes=("param",)).pointer
        coordinates = (self._value(operands[number], INT32) for number in (2, 3))
        self.lower.scope.function.has_phases = True
        copy = self._call(
            "tensor_copy_multicast" if is_multicast else "tensor_copy",
            (self._barrier(to), map_pointer, *coordinates, self._barrier(barrier), *block_mask),
        )
        self._emit(copy)

    def _barrier(self, text: str) -> ir.Expression:
        """Return the pointer for an address in shared memory, such as a barrier's."""
        return self._place(text, _UINT8, suffixes=("shared",)).pointer

    def _pointer(self, text: str) -> ir.Expression:
        """Return the pointer for an address in global memory."""
        return self._place(text, _UINT8, suffixes=("global",)).pointer

    def _do_mbarrier(self, instruction: parsing.Instruction) -> None:
        position = self._position

        def emit(op: str, barrier: ir.Expression, argument: ir.Expression) -> None:
            self._emit(build_phase_operation(self.lower, op, barrier, argument, position))

        match instruction.suffixes:
            case ("init", *_):
                emit("init", self._barrier(instruction.operands[0]), self._value(instruction.operands[1], _UINT32))
            case ("inval", *_):
                return
            case ("expect_tx" | "complete_tx" as op, *_):
                address, amount = instruction.operands[:2]
                emit(op.removesuffix("_tx"), self._barrier(address), self._value(amount, _UINT32))
            case ("arrive" | "arrive_drop" as op, *rest) if "noComplete" not in rest:
                target, address, *counts = instruction.operands
                barrier = self._barrier(address)
                count: ir.Expression = build_constant(_UINT32, 1)
                if counts and "expect_tx" in rest:
                    emit("expect", barrier, self._value(counts[0], _UINT32))
                elif counts:
                    count = self._value(counts[0], _UINT32)
                operation = "drop" if op.endswith("drop") else "arrive"
                arrived = build_phase_operation(
                    self.lower, operation, barrier, count, position, is_relaxed="relaxed" in rest
                )
                self._store(target, arrived)
            case ("test_wait" | "try_wait", *rest):
                target, address, parity, *_ = instruction.operands
                barrier, number = self._barrier(address), self._value(parity, _UINT32)
                is_complete = build_phase_operation(
                    self.lower, "test", barrier, number, position, is_relaxed="relaxed" in rest
                )
                if "until" in instruction.suffixes:
                    wait_loop = ir.Loop(ir.Unary(BOOL, "!", is_complete), None, ir.Block(()), True, position)
                    self.statements.append(wait_loop)
                else:
                    self._store(target, is_complete)
            case _:
                raise self._unsupported_error()

    def _do_activemask(self, instruction: parsing.Instruction) -> None:
        self._warp(instruction.operands[0], _UINT32, "__activemask", ())

    def _do_bar(self, instruction: parsing.Instruction) -> None:
        if instruction.modifiers == ("warp",):
            lanes = self._value(instruction.operands[0], _UINT32)
            self._emit(ir.Fence(VOID, "__syncwarp", self._position, lanes))
        elif instruction.operands == ("0",) and not instruction.modifiers:
            self.statements.append(ir.Barrier(self._position))
        elif "red" in instruction.modifiers:
            self._lower_barrier_vote(instruction)
        else:
            self._lower_named_barrier(instruction)

    def _lower_barrier_vote(self, instruction: parsing.Instruction) -> None:
        """Lower a barrier that combines a predicate of each thread."""
        vote_name = _BARRIER_VOTES.get(instruction.modifiers[-1])
        if vote_name is None or len(instruction.operands) < 3:
            raise self._unsupported_error()
        target, number, *count, predicate = instruction.operands
        if number != "0" or count:
            raise build_unsupported_error(
                self.cursor,
                f"{instruction} at a barrier other than 0 or with a thread count",
                advice=f"{instruction.operation}.red at barrier 0, for all threads of the block, is supported.",
            )
        votes = convert(self._value(predicate, BOOL), INT32, self.cursor)
        vote: ir.Expression = ir.Warp(INT32, vote_name, (votes,), self._position)
        is_count = vote_name == "__syncthreads_count"
        if not is_count:
            vote = ir.Binary(BOOL, "!=", vote, build_constant(INT32, 0))
        self._store(target, convert(vote, _UINT32, self.cursor) if is_count else vote)

    def _lower_named_barrier(self, instruction: parsing.Instruction) -> None:
        arrives = instruction.modifiers == ("arrive",)
        if not (arrives or not instruction.modifiers) or len(instruction.operands) not in ((2,) if arrives else (1, 2)):
            raise self._unsupported_error()
        number, *count = (self._value(operand, _UINT32) for operand in instruction.operands)
        self.lower.scope.function.has_phases = True
        barrier = ir.NamedBarrier(
            VOID,
            "arrive" if arrives else "sync",
            number,
            count[0] if count else None,
            instruction.operation == "bar" or "aligned" in instruction.suffixes,
            self._position,
        )
        self._emit(barrier)

    def _do_barrier(self, instruction: parsing.Instruction) -> None:
        match instruction.suffixes:
            case ("cluster", "arrive" | "wait" as part, *modifiers):
                position, is_relaxed = self._position, "relaxed" in modifiers
                barrier = build_cluster_barrier(self.lower, part, position, is_relaxed=is_relaxed)
                self._emit(barrier)
            case _:
                self._do_bar(instruction)

    def _do_mapa(self, instruction: parsing.Instruction) -> None:
        """Lower the mapping of an address to another block of the cluster: a shared address, or a pointer."""
        target, address, rank = instruction.operands
        position, block_rank = self._position, self._value(rank, _UINT32)
        type = self._type(instruction.types[-1])
        is_number = "shared::cluster" in instruction.suffixes
        pointer: ir.Expression = ir.Cast(Pointer(_UINT8), self._value(address, type))
        if is_number:
            pointer = ir.SharedAddress(Pointer(_UINT8), self._value(address, type), position)
        mapped: ir.Expression = ir.ClusterAddress(Pointer(_UINT8), pointer, block_rank, position)
        self._store(target, ir.SharedAddress(type, mapped, position) if is_number else mapped)

    def _do_membar(self, instruction: parsing.Instruction) -> None:
        name = next((_FENCES[word] for word in instruction.suffixes if word in _FENCES), "__threadfence")
        order = _find_order(instruction.suffixes)
        if order in ("acquire", "release", "acq_rel"):
            name += f".{order}"
        self._emit(ir.Fence(VOID, name, self._position))

    def _do_fence(self, instruction: parsing.Instruction) -> None:
        if "proxy" in instruction.suffixes:
            self._emit(ir.Fence(VOID, "fence.proxy.async", self._position))
        elif "mbarrier_init" in instruction.suffixes:
            self._emit(ir.Fence(VOID, "fence.mbarrier_init", self._position))
        else:
            self._do_membar(instruction)

    def _do_trap(self, instruction: parsing.Instruction) -> None:
        assertion = ir.Assertion(VOID, build_constant(BOOL, 0), "trap is not reached", self._position)
        self._emit(assertion)

    def _lower_with_carry(self, instruction: parsing.Instruction, first: ir.Expression, second: ir.Expression) -> None:
        """Add or subtract, with the saved carry if the instruction uses it, and save the new carry."""
        kind = "subc" if instruction.operation.startswith("sub") else "addc"
        carry = self._get_carry()
        before: ir.Expression = (
            carry if instruction.operation in ("addc", "subc", "madc") else build_constant(_UINT32, 0)
        )
        unsigned = "u" + instruction.types[-1][1:]
        addends = [
            self._declare(f"lockstep {number}", value.type, value) for number, value in enumerate((first, second))
        ]
        operands = [*addends, before]
        value = self._call(f"{kind}_{unsigned}", operands)
        result = self._declare("lockstep result", value.type, value)
        if "cc" in instruction.modifiers:
            new_carry = self._call(f"{kind}_carry_{unsigned}", operands)
            self._emit(ir.Assign(_UINT32, carry, new_carry))
        self._store(instruction.operands[0], result)

    def _get_carry(self) -> ir.Local:
        """Return the carry register, which persists across the `asm` statements of a function."""
        scope = self.lower.scope
        if scope.carry is None:
            scope.carry = ir.Local(_UINT32, scope.new_slot(), "carry")
            zero = build_constant(_UINT32, 0)
            scope.hoisted_declarations.append(ir.Declare(scope.carry.slot, _UINT32, zero, self._position, "carry"))
        return scope.carry

    def _do_addc(self, instruction: parsing.Instruction) -> None:
        type = Scalar(f"uint{8 * self._type(instruction.types[-1]).size}")
        _, left, right = instruction.operands
        self._lower_with_carry(instruction, self._value(left, type), self._value(right, type))

    _do_subc = _do_addc

    def _do_add(self, instruction: parsing.Instruction) -> None:
        (self._do_addc if "cc" in instruction.modifiers else self._lower_by_name)(instruction)

    _do_sub = _do_add

    def _do_mad(self, instruction: parsing.Instruction) -> None:
        (self._do_madc if "cc" in instruction.modifiers else self._lower_by_name)(instruction)

    def _do_madc(self, instruction: parsing.Instruction) -> None:
        _, left, right, more = instruction.operands
        type = Scalar(f"uint{8 * self._type(instruction.types[-1]).size}")
        product = self._call(f"mul_{instruction.modifiers[0]}_{instruction.types[-1]}", [left, right])
        self._lower_with_carry(instruction, self._reinterpret(product, type), self._value(more, type))


def _is_tile(suffixes: Sequence[str]) -> bool:
    """Return whether the suffixes of a tensor copy are those of a box that an mbarrier completes."""
    words = [word for word in suffixes if word != "tile"]
    return words in (["mbarrier::complete_tx::bytes"], ["mbarrier::complete_tx::bytes", "multicast::cluster"])


def _find_accumulators(parsed: list[parsing.Instruction]) -> frozenset[str]:
    """Return the registers that a statement uses only once, as the accumulator of a warpgroup's product."""
    sums: set[str] = set()
    other_registers: list[str] = []
    for each in parsed:
        is_product = each.suffixes[:1] == ("mma_async",)
        names = [name for operand in each.operands[is_product:] for name in re.findall(r"%\d+", operand)]
        if is_product:
            accumulators = re.findall(r"%\d+", each.operands[0])
            other_registers += sums.intersection(accumulators)
            sums.update(accumulators)
        other_registers += names
    return frozenset(sums.difference(other_registers))


def _parse_number(text: str) -> int | float | None:
    """Parse a number in PTX syntax."""
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return float(struct.unpack(">f", bytes.fromhex(match[1]))[0])
    if match := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", text):
        return float(struct.unpack(">d", bytes.fromhex(match[1]))[0])
    try:
        return int(text.rstrip("U"), 0)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None


def _find_order(suffixes: Sequence[str]) -> ir.MemoryOrder | None:
    """Return the memory order that an instruction names; None if it names none."""
    return next((order for order in _ORDERS if order in suffixes), None)


def _find_scope(suffixes: Sequence[str], default: ir.Scope) -> ir.Scope:
    """Return the scope that an instruction names."""
    return next((scope for word, scope in _SCOPES.items() if word in suffixes), default)
