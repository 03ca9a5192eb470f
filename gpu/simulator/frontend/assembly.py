"""`asm` statements: PTX's instructions, lowered to what the IR has, or to calls of the shim's functions for them."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpu.simulator import ir
from gpu.simulator.frontend import ptx
from gpu.simulator.frontend.clang import Cursor, CursorKind, start_of
from gpu.simulator.frontend.conversions import convert, number_of
from gpu.simulator.frontend.cuda_functions import cluster_barrier, phase
from gpu.simulator.frontend.lowering import Lowering
from gpu.simulator.frontend.matrix_instructions import WarpgroupInstruction, product, warpgroup_product
from gpu.simulator.frontend.types import refuse
from gpu.simulator.intrinsics import MATRIX_PRODUCT, WARPGROUP_PRODUCT, WHOLE_WARP
from gpu.simulator.types import BOOL, INT32, INT64, VOID, Pointer, Scalar, Type

_UINT8, _UINT16, _UINT32, _UINT64 = (Scalar(f"uint{bits}") for bits in (8, 16, 32, 64))
_FLOAT32, _FLOAT64 = Scalar("float32"), Scalar("float64")
_KINDS = {"u": "uint", "b": "uint", "s": "int", "f": "float"}
_OF_CONSTRAINT = {"h": Scalar("uint16"), "r": _UINT32, "l": _UINT64, "f": _FLOAT32, "d": _FLOAT64}
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
_FENCES = {"cta": "__threadfence_block", "sys": "__threadfence_system"}
_AXES = ("x", "y", "z")
_SPECIAL = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}
_ORDERED = frozenset(("volatile", "relaxed", "acquire", "release", "acq_rel"))
_BITS: dict[tuple[str, str], str] = {
    ("float32", "i"): "__float_as_int",
    ("float32", "u"): "__float_as_uint",
    ("float64", "i"): "__double_as_longlong",
    ("float64", "u"): "__double_as_longlong",
}
_REGISTERS_OF_A = 4
_FROM_HALF = "__lockstep_from_half"
_INSTEAD = "Use the intrinsic for it, such as __ldg, __popc or __shfl_sync."


def assembly(lower: Lowering, cursor: Cursor) -> list[ir.Statement]:
    """Lower an `asm` statement: operands are read first, and written when all its instructions are done."""
    definition = lower.scope.definition
    written = ptx.statements(definition.printed)
    own = [each for each in definition.descendants() if each.kind == CursorKind.ASM_STMT]
    places = [number for number, each in enumerate(own) if each.stands_with(cursor)]
    if len(written) != len(own) or not places:
        raise refuse(cursor, "this asm statement", instead=_INSTEAD)
    found = written[places[0]]
    if len({written[place] for place in places}) > 1:
        raise refuse(cursor, "several asm statements of one macro", instead=_INSTEAD)
    parsed = ptx.instructions(found.template)
    if parsed is None:
        raise refuse(cursor, "a jump, or what is no PTX, within asm", instead=_INSTEAD)
    return _Assembly(lower, cursor).lowered(parsed, found.constraints) if parsed else []


@dataclass(frozen=True)
class _Tile:
    """A tile in shared memory that tensor cores read: its descriptor, and which factor of a product it is.

    Of one that is not turned also the byte with which begins what a lane has of the first 8 lines, how many bytes lie
    between those and the next 8, and between the halves of a line, and which bits of an address change others.
    """

    descriptor: ir.Local
    factor: str
    first: ir.Expression | None = None
    stride: ir.Expression = field(default_factory=lambda: number_of(_UINT32, 0))
    far: ir.Expression = field(default_factory=lambda: number_of(_UINT32, 0))
    changing: ir.Expression = field(default_factory=lambda: number_of(_UINT32, 0))

    def place(self, part: int, half: int) -> ir.Expression:
        """Return the byte of a half of a line some times 8 lines further on, before bits of it change."""
        assert self.first is not None
        found = self.first
        for count, by in ((part, self.stride), (half, self.far)):
            if count:
                found = ir.Binary(_UINT32, "+", found, ir.Binary(_UINT32, "*", by, number_of(_UINT32, count)))
        return found


@dataclass
class _Assembly:
    """The registers of one statement while it is lowered."""

    lower: Lowering
    cursor: Cursor
    registers: dict[str, ir.Expression] = field(default_factory=dict)
    made: list[ir.Statement] = field(default_factory=list)
    sums: dict[str, ir.Expression] = field(default_factory=dict)
    """What registers hold before, of those that are read only where a product is added to them."""

    def lowered(self, parsed: list[ptx.Instruction], constraints: tuple[str, ...]) -> list[ir.Statement]:
        outputs: list[tuple[ir.Place, ir.Local]] = []
        sums = _only_sums(parsed)
        # Clobbers that are spelled out have no expressions.
        for number, (constraint, operand) in enumerate(zip(constraints, self.cursor.children, strict=False)):
            name = f"%{number}"
            if constraint[0] in "=+":
                place = self.lower.place(operand)
                if place is None:
                    raise refuse(operand, "what this asm writes to")
                if isinstance(place, ir.Element) and name in sums and constraint[0] == "+":
                    place = replace(place, sum=True)
                held = place.type if isinstance(place.type, Scalar | Pointer) else _OF_CONSTRAINT["r"]
                initial: ir.Expression | None = None
                if isinstance(place, ir.Element) and place.sum:
                    initial = ir.Load(place.type, place)
                elif constraint[0] == "+":
                    initial = self.lower.value(operand)
                if initial is not None and name in sums:
                    self.sums[name], initial = initial, None
                outputs.append((place, self._declared(name, held, initial)))
                continue
            value = self.lower.value(operand)
            self.registers[name] = value if isinstance(value, ir.Const) else self._declared(name, value.type, value)
        for each in parsed:
            if each.operation == ".reg":
                for name in each.operands:
                    self._declared(name, self._type(each.types[0], each), None)
                continue
            self._guarded(each)
        for place, local in outputs:
            self.made.append(self._evaluated(ir.Assign(place.type, place, local)))
        return [ir.Block(tuple(self.made))]

    def _declared(self, name: str, type: Type, value: ir.Expression | None) -> ir.Local:
        local = ir.Local(type, self.lower.scope.new_slot(), name)
        self.registers[name] = local
        self.made.append(ir.Declare(local.slot, type, value, start_of(self.cursor), name))
        return local

    def _evaluated(self, expression: ir.Expression) -> ir.Statement:
        return ir.Evaluate(expression, start_of(self.cursor))

    def _guarded(self, each: ptx.Instruction) -> None:
        if not each.guard:
            self._instruction(each)
            return
        condition = self._value(each.guard, BOOL, each)
        around, self.made = self.made, []
        self._instruction(each)
        inner, self.made = self.made, around
        if each.negated:
            condition = ir.Unary(BOOL, "!", condition)
        self.made.append(ir.If(condition, ir.Block(tuple(inner)), None, start_of(self.cursor)))

    def _instruction(self, each: ptx.Instruction) -> None:
        special = getattr(self, f"_do_{each.operation}", None)
        if special is not None:
            special(each)
        elif each.operation in _WITHOUT_EFFECT:
            return
        else:
            target, *operands = each.operands or ("",)
            name = "_".join((each.operation, *each.modifiers, *each.types))
            self._store(target, self._call(each, name, operands), each)

    def _call(self, each: ptx.Instruction, name: str, operands: Sequence[str | ir.Expression]) -> ir.Expression:
        try:
            callee = self.lower.scope.unit.known(f"__lockstep_ptx_{name}")
        except StopIteration:
            raise self._refused(each) from None
        function = self.lower.scope.function_called(callee, start_of(self.cursor))
        if len(operands) != len(function.parameters):
            raise self._refused(each)
        values = tuple(
            self._value(operand, type, each) if isinstance(operand, str) else self._as(operand, type)
            for operand, (_, type) in zip(operands, function.parameters, strict=True)
        )
        return ir.Call(function.type, function, values, start_of(self.cursor))

    def _refused(self, each: ptx.Instruction) -> Exception:
        return refuse(self.cursor, f"the instruction {each}", instead=_INSTEAD)

    def _type(self, name: str, each: ptx.Instruction) -> Scalar:
        if name == "pred":
            return BOOL
        if not re.fullmatch(r"[usb](8|16|32|64)|f(32|64)", name):
            raise self._refused(each)
        return Scalar(f"{_KINDS[name[0]]}{name[1:]}")

    # Operands

    def _value(self, text: str, type: Type, each: ptx.Instruction) -> ir.Expression:
        """Return an operand as a value of a type: a register's bits are what they are."""
        if text in self.registers:
            return self._as(self.registers[text], type)
        if text.startswith("!") and text[1:].strip() in self.registers:
            return ir.Unary(BOOL, "!", self._value(text[1:].strip(), BOOL, each))
        if text.startswith("%"):
            return self._as(self._special(text.lstrip("%"), each), type)
        number = _number(text)
        if number is None or not isinstance(type, Scalar):
            raise self._refused(each)
        if isinstance(number, int):
            bits = number & ((1 << 8 * type.size) - 1)
            if type.is_float:
                return number_of(type, number)
            return number_of(
                type, bits - (1 << 8 * type.size) if type.is_signed and bits >> (8 * type.size - 1) else bits
            )
        return number_of(type, number)

    def _special(self, name: str, each: ptx.Instruction) -> ir.Expression:
        word, _, axis = name.partition(".")
        if word in _SPECIAL and axis in _AXES:
            return ir.Special(_UINT32, _SPECIAL[word], _AXES.index(axis))
        if word in ("clock", "clock64", "globaltimer"):
            return ir.Clock(INT64)
        return self._call(each, name.replace(".", "_"), [])

    def _as(self, value: ir.Expression, type: Type) -> ir.Expression:
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

    def _store(self, target: str, value: ir.Expression, each: ptx.Instruction) -> None:
        if target == "_":
            self.made.append(self._evaluated(value))
            return
        local = self.registers.get(target)
        if not isinstance(local, ir.Local):
            raise self._refused(each)
        self.made.append(self._evaluated(ir.Assign(local.type, local, self._as(value, local.type))))

    def _place(self, text: str, type: Scalar, each: ptx.Instruction, moved: int = 0) -> ir.Element:
        found = re.fullmatch(r"\[\s*([\w$%]+)\s*(?:\+\s*(-?\w+)\s*)?\]", text)
        number = _number(found[2] or "0") if found is not None else None
        if found is None or not isinstance(number, int) or found[1] not in self.registers:
            raise self._refused(each)
        base = self.registers[found[1]]
        pointer: ir.Expression = ir.Cast(Pointer(type), base)
        if isinstance(base.type, Scalar) and any(word.startswith("shared") for word in each.words):
            pointer = ir.SharedAddress(Pointer(type), base, start_of(self.cursor))
        elif isinstance(base.type, Scalar) and base.type.size < 8:
            raise refuse(self.cursor, "an address of 32 bits within asm", instead='Give it the pointer itself: "l"(p).')
        if number + moved:
            pointer = ir.Member(Pointer(type), pointer, number + moved)
        volatile = not _ORDERED.isdisjoint(each.words)
        return ir.Element(type, pointer, None, start_of(self.cursor), volatile, is_led_to=True)

    def _parts(self, text: str) -> list[str]:
        return [part.strip() for part in text.strip("{} ").split(",")]

    # Instructions that are no functions

    def _do_mov(self, each: ptx.Instruction) -> None:
        target, source = each.operands
        type = self._type(each.types[-1], each)
        if source.startswith("{"):
            parts = self._parts(source)
            narrow = Scalar(f"uint{8 * type.size // len(parts)}")
            whole: ir.Expression = number_of(type, 0)
            for place, part in enumerate(parts):
                value = convert(self._value(part, narrow, each), type, self.cursor)
                shift = number_of(INT32, place * 8 * narrow.size)
                whole = ir.Binary(type, "|", whole, ir.Binary(type, "<<", value, shift))
            self._store(target, whole, each)
        elif target.startswith("{"):
            parts = self._parts(target)
            narrow = Scalar(f"uint{8 * type.size // len(parts)}")
            for place, part in enumerate(parts):
                shift = number_of(INT32, place * 8 * narrow.size)
                value = ir.Binary(type, ">>", self._value(source, type, each), shift)
                self._store(part, convert(value, narrow, self.cursor), each)
        else:
            held = self.registers.get(source)
            keeps = held is not None and isinstance(held.type, Pointer) and type.size == 8
            self._store(target, held if keeps and held is not None else self._value(source, type, each), each)

    def _do_cvta(self, each: ptx.Instruction) -> None:
        if not any(word.startswith("shared") for word in each.words):
            self._do_mov(each)
            return
        target, source = each.operands
        type = self._type(each.types[-1], each)
        if "to" in each.modifiers:
            pointer = self.registers.get(source)
            if pointer is None:
                raise self._refused(each)
            if not isinstance(pointer.type, Pointer):
                pointer = ir.Cast(Pointer(_UINT8), pointer)
            self._store(target, ir.SharedAddress(type, pointer, start_of(self.cursor)), each)
        else:
            number = self._value(source, type, each)
            self._store(target, ir.SharedAddress(Pointer(_UINT8), number, start_of(self.cursor)), each)

    def _do_setp(self, each: ptx.Instruction) -> None:
        target, left, right, *more = each.operands
        type = self._type(each.types[-1], each)
        compare, *combine = each.modifiers
        if compare not in _COMPARES or len(combine) != len(more) or len(more) > 1:
            raise self._refused(each)
        found: ir.Expression = ir.Binary(
            BOOL, _COMPARES[compare], self._value(left, type, each), self._value(right, type, each)
        )
        if more:
            found = self._call(each, f"{combine[0]}_pred", [found, self._value(more[0], BOOL, each)])
        first, _, other = target.partition("|")
        self._store(first.strip(), found, each)
        if other and not more:
            self._store(other.strip(), ir.Unary(BOOL, "!", self._value(first.strip(), BOOL, each)), each)
        elif other:
            raise self._refused(each)

    def _do_selp(self, each: ptx.Instruction) -> None:
        target, chosen, other, condition = each.operands
        type = self._type(each.types[-1], each)
        values = self._value(chosen, type, each), self._value(other, type, each)
        self._store(target, ir.Select(type, self._value(condition, BOOL, each), *values), each)

    def _do_cvt(self, each: ptx.Instruction) -> None:
        target, source = each.operands
        if each.words == ("rna", "tf32", "f32"):
            self._store(target, self._call(each, "to_tf32", [source]), each)
            return
        to, given = (self._type(name, each) for name in each.types)
        rounding = [word for word in each.modifiers if word in _ROUNDINGS]
        if set(each.modifiers) - {*_ROUNDINGS, "rz", "to", "space"} or "rz" in each.modifiers:
            raise self._refused(each)
        value = self._value(source, given, each)
        if rounding and given.is_float:
            value = ir.Intrinsic(given, _ROUNDINGS[rounding[0]] + ("f" if given.size == 4 else ""), (value,))
        self._store(target, convert(value, to, self.cursor), each)

    def _do_ld(self, each: ptx.Instruction) -> None:
        target, address = each.operands
        type = self._type(each.types[-1], each)
        parts = self._parts(target) if target.startswith("{") else [target]
        for number, part in enumerate(parts):
            place = self._place(address, type, each, number * type.size)
            self._store(part, ir.Load(type, place), each)

    def _do_ldu(self, each: ptx.Instruction) -> None:
        self._do_ld(each)

    def _do_st(self, each: ptx.Instruction) -> None:
        address, source, *barrier = each.operands
        type = self._type(each.types[-1], each)
        parts = self._parts(source) if source.startswith("{") else [source]
        for number, part in enumerate(parts):
            place = self._place(address, type, each, number * type.size)
            self.made.append(self._evaluated(ir.Assign(type, place, self._value(part, type, each))))
        if "async" in each.words and len(barrier) == 1:
            # It is there at once, which it may be, and its barrier knows.
            brought = number_of(_UINT32, type.size * len(parts))
            told = phase(self.lower, "complete", self._barrier(barrier[0], each), brought, start_of(self.cursor))
            self.made.append(self._evaluated(told))
        elif "async" in each.words or barrier:
            raise self._refused(each)

    def _do_red(self, each: ptx.Instruction) -> None:
        self.made.append(self._evaluated(self._atomic(each, each.operands, used=False)))

    def _do_atom(self, each: ptx.Instruction) -> None:
        target, *operands = each.operands
        self._store(target, self._atomic(each, operands, used=True), each)

    def _atomic(self, each: ptx.Instruction, operands: Any, *, used: bool) -> ir.Expression:
        address, *values = operands
        op = each.modifiers[0] if each.modifiers else ""
        if op not in _ATOMICS or len(values) != (2 if op == "cas" else 1):
            raise self._refused(each)
        type = self._type(each.types[-1], each)
        given = tuple(self._value(value, type, each) for value in values)
        return ir.Atomic(type, op, self._place(address, type, each), given, used)

    def _warp(
        self, each: ptx.Instruction, target: str, type: Scalar, op: str, values: tuple[ir.Expression, ...]
    ) -> None:
        self._store(target, ir.Warp(type, op, values, start_of(self.cursor)), each)

    def _do_shfl(self, each: ptx.Instruction) -> None:
        target, source, by, how, *mask = each.operands
        kind = each.modifiers[-1] if each.modifiers else ""
        clamp = self._value(how, INT32, each)
        if kind not in _SHUFFLES or not mask or "|" in target or not isinstance(clamp, ir.Const):
            raise self._refused(each)
        width = 32 - (int(clamp.value) >> 8 & 31)
        values = (
            self._value(mask[0], _UINT32, each),
            self._value(source, _UINT32, each),
            self._value(by, _UINT32 if kind in ("up", "down") else INT32, each),
            number_of(INT32, width),
        )
        self._warp(each, target, _UINT32, _SHUFFLES[kind], values)

    def _do_vote(self, each: ptx.Instruction) -> None:
        target, predicate, *mask = each.operands
        kind = each.modifiers[-1] if each.modifiers else ""
        if kind not in ("ballot", "any", "all") or not mask:
            raise self._refused(each)
        asked = convert(self._value(predicate, BOOL, each), INT32, self.cursor)
        values = (self._value(mask[0], _UINT32, each), asked)
        type = _UINT32 if kind == "ballot" else INT32
        vote: ir.Expression = ir.Warp(type, f"__{kind}_sync", values, start_of(self.cursor))
        if kind != "ballot":
            vote = ir.Binary(BOOL, "!=", vote, number_of(INT32, 0))
        self._store(target, vote, each)

    def _do_match(self, each: ptx.Instruction) -> None:
        target, value, mask = each.operands
        if each.modifiers != ("any",):
            raise self._refused(each)
        type = self._type(each.types[-1], each)
        values = (self._value(mask, _UINT32, each), self._value(value, type, each))
        self._warp(each, target, _UINT32, "__match_any_sync", values)

    def _do_redux(self, each: ptx.Instruction) -> None:
        target, value, mask = each.operands
        type = self._type(each.types[-1], each)
        values = (self._value(mask, _UINT32, each), self._value(value, type, each))
        self._warp(each, target, type, f"__reduce_{each.modifiers[0]}_sync", values)

    def _whole_warp(self) -> None:
        self.made.append(self._evaluated(ir.Warp(INT32, WHOLE_WARP, (), start_of(self.cursor))))

    def _do_mma(self, each: ptx.Instruction) -> None:
        """Lower a product of tiles, a result after the other; registers are unpacked once."""
        found = product(each.words)
        if found is None or len(each.operands) != 4:
            raise self._refused(each)
        targets, *given = (self._parts(operand) for operand in each.operands)
        if [len(targets), *map(len, given)] != [found.c, found.a, found.b, found.c]:
            raise self._refused(each)
        self._whole_warp()
        of_a, of_b = (
            [self._unpacked(each, unpack, register, found.packed, found.sum) for register in registers]
            for unpack, registers in ((found.unpack_a, given[0]), (found.unpack_b, given[1]))
        )
        unpack, held = ("half_at", 2) if found.halves else ("", 1)
        of_c = [self._unpacked(each, unpack, register, held, found.sum) for register in given[2]]
        sums = [one for register in of_c for one in register]
        columns = [one for register in of_b for one in register]
        results = []
        for number, before in enumerate(sums):
            rows = of_a[number // 2 % found.row_parts :: found.row_parts]
            values = (number_of(INT32, number % 2), before, *(one for row in rows for one in row), *columns)
            made = ir.Warp(found.sum, MATRIX_PRODUCT, values, start_of(self.cursor))
            results.append(self._declared(f"lockstep d{number}", found.sum, made))
        for number, target in enumerate(targets):
            pair = results[2 * number : 2 * number + 2]
            self._store(target, self._call(each, "two_halves", pair) if found.halves else results[number], each)

    def _do_wgmma(self, each: ptx.Instruction) -> None:
        """Lower what a warpgroup does: a product, the end of a group of them, and the wait for groups."""
        match each.words:
            case ("fence", "sync", "aligned"):
                self._whole_warp()
                self.made.append(self._evaluated(ir.Fence(VOID, "wgmma.fence", start_of(self.cursor))))
            case ("commit_group", "sync", "aligned"):
                self._whole_warp()
                self.made.append(self._evaluated(ir.AsyncCommit(VOID, "product")))
            case ("wait_group", "sync", "aligned"):
                self._whole_warp()
                left = self._value(each.operands[0], _UINT64, each)
                self.made.append(self._evaluated(ir.AsyncWait(VOID, left, "product")))
                # What tensor cores have read for a warp is of none of its lanes alone.
                self.made.append(self._evaluated(ir.Fence(VOID, "__syncwarp", start_of(self.cursor))))
            case _:
                found = warpgroup_product(each.words)
                if found is None or len(each.operands) < 4:
                    raise self._refused(each)
                self._multiply_tiles(each, found)

    def _multiply_tiles(self, each: ptx.Instruction, found: WarpgroupInstruction) -> None:
        """Lower a product of tiles in shared memory: each warp does its own rows, 8 columns after the other."""
        target, of_a, of_b, adds, *flags = each.operands
        targets, in_registers = self._parts(target), of_a.startswith("{")
        numbers = [self._immediate(flag) for flag in flags]
        signs, turned = numbers[:2], numbers[2:]
        tiles = 1 if in_registers else 2
        if (
            len(targets) != found.columns // 2
            or (in_registers and len(self._parts(of_a)) != _REGISTERS_OF_A)
            or len(turned) != (tiles if found.turns else 0)
            or not all(sign in (1, -1) for sign in signs)
            or not all(flag in (0, 1) for flag in turned)
        ):
            raise self._refused(each)
        turns_a, turns_b = ([0] * (2 - len(turned)) + turned) if found.turns else (0, 0)
        self._whole_warp()
        self.made.append(self._evaluated(self._call(each, "warpgroup", [])))
        condition = self._declared("lockstep adds", BOOL, self._value(adds, BOOL, each))
        if in_registers:
            rows = [
                self._unpacked(each, found.unpack, register, found.packed, _FLOAT32) for register in self._parts(of_a)
            ]
        else:
            tile = self._tile(each, of_a, "a", turns_a)
            rows = [self._of_tile(each, found, tile, number % 2, number // 2) for number in range(4)]
        if signs[0] != signs[1]:
            rows = [tuple(ir.Unary(_FLOAT32, "-", one) for one in register) for register in rows]
        tile = self._tile(each, of_b, "b", turns_b)
        self._read_sums(targets, condition)
        results = []
        for number, register in enumerate(targets):
            if number % 4 == 0:
                columns = [self._of_tile(each, found, tile, number // 4, half) for half in range(2)]
            before = ir.Select(_FLOAT32, condition, self._value(register, _FLOAT32, each), number_of(_FLOAT32, 0))
            given = [one for held in (*rows[number // 2 % 2 :: 2], *columns) for one in held]
            values = (number_of(INT32, number % 2), before, *given)
            made = ir.Warp(_FLOAT32, WARPGROUP_PRODUCT, values, start_of(self.cursor))
            results.append(self._declared(f"lockstep d{number}", _FLOAT32, made))
        for register, result in zip(targets, results, strict=True):
            self._store(register, result, each)

    def _immediate(self, text: str) -> int | float | None:
        """Return a number that stands in the instruction, or is handed to it as a constant."""
        held = self.registers.get(text)
        return int(held.value) if isinstance(held, ir.Const) else _number(text)

    def _read_sums(self, registers: list[str], adds: ir.Expression) -> None:
        """Read what a product is added to, where it is: what it replaces may never have been written."""
        around, self.made = self.made, []
        for register in registers:
            if register in self.sums:
                local = self.registers[register]
                assert isinstance(local, ir.Local)
                before = self._as(self.sums.pop(register), local.type)
                self.made.append(self._evaluated(ir.Assign(local.type, local, before)))
        inner, self.made = self.made, around
        if inner:
            self.made.append(ir.If(adds, ir.Block(tuple(inner)), None, start_of(self.cursor)))

    def _tile(self, each: ptx.Instruction, text: str, factor: str, turned: Any) -> _Tile:
        """Return a tile in shared memory, and where in it what a lane has begins."""
        tile = self._declared("lockstep tile", _UINT64, self._value(text, _UINT64, each))
        self.made.append(self._evaluated(self._call(each, "wgmma_tile", [tile])))
        names = () if turned else (f"first_{factor}", "stride", "far", "changing")
        parts = [
            self._declared(f"lockstep {name}", _UINT32, self._call(each, f"wgmma_{name}", [tile])) for name in names
        ]
        return _Tile(tile, factor, *parts)

    def _of_tile(
        self, each: ptx.Instruction, found: WarpgroupInstruction, tile: _Tile, part: int, half: int
    ) -> tuple[ir.Expression, ...]:
        """Return what a lane has of 4 bytes of a line of a tile, or of as many lines where it lies turned."""
        unit = _UINT16 if found.packed > 1 else _UINT32
        elements: list[ir.Expression] = []
        start: ir.Expression | None = None
        if tile.first is not None:
            at = self._declared("lockstep at", _UINT32, tile.place(part, half))
            changed = ir.Binary(_UINT32, "&", ir.Binary(_UINT32, ">>", at, number_of(INT32, 7)), tile.changing)
            at_last = ir.Binary(_UINT32, "^", at, ir.Binary(_UINT32, "<<", changed, number_of(INT32, 4)))
            pointer = ir.SharedAddress(Pointer(unit), at_last, start_of(self.cursor))
            start = self._declared("lockstep place", pointer.type, pointer)
        for place in range(found.packed):
            if start is None:
                numbers = [number_of(_UINT32, number) for number in (part, half, place)]
                asked: list[str | ir.Expression] = [tile.descriptor, *numbers]
                address = self._call(each, f"wgmma_{tile.factor}_turned", asked)
            else:
                address = ir.Member(Pointer(unit), start, place * unit.size) if place else start
            held = ir.Load(unit, ir.Element(unit, address, None, start_of(self.cursor), is_led_to=True), reads_on=True)
            value: ir.Expression = ir.Intrinsic(_FLOAT32, _FROM_HALF, (held,))
            if found.unpack != "half_at":
                value = self._call(each, found.unpack, [self._as(held, _UINT32), number_of(_UINT32, 0)])
            elements.append(self._declared(f"lockstep {tile.factor}", _FLOAT32, value))
        return tuple(elements)

    def _unpacked(
        self, each: ptx.Instruction, function: str, register: str, count: int, type: Scalar
    ) -> tuple[ir.Expression, ...]:
        """Return the elements that a register holds, as the type they are multiplied in."""
        if not function:
            return (self._value(register, type, each),)
        held = self._value(register, _UINT32, each)
        return tuple(
            self._declared(f"lockstep {register}.{place}", type, self._call(each, function, [held, place_of]))
            for place, place_of in enumerate(number_of(_UINT32, place) for place in range(count))
        )

    def _do_ldmatrix(self, each: ptx.Instruction) -> None:
        target, address = each.operands
        place, targets = self._of_matrices(each, address, self._parts(target))
        function = "ldmatrix_trans" if "trans" in each.words else "ldmatrix"
        # All are read before any is written: an address may be in a register that takes one.
        read = [
            self._declared(
                f"lockstep m{number}", _UINT32, self._call(each, function, [place, number_of(_UINT32, number)])
            )
            for number in range(len(targets))
        ]
        for register, value in zip(targets, read, strict=True):
            self._store(register, value, each)

    def _do_stmatrix(self, each: ptx.Instruction) -> None:
        address, source = each.operands
        place, sources = self._of_matrices(each, address, self._parts(source))
        function = "stmatrix_trans" if "trans" in each.words else "stmatrix"
        for number, register in enumerate(sources):
            given = [place, number_of(_UINT32, number), self._value(register, _UINT32, each)]
            self.made.append(self._evaluated(self._call(each, function, given)))

    def _of_matrices(
        self, each: ptx.Instruction, address: str, registers: list[str]
    ) -> tuple[ir.Expression, list[str]]:
        """Return the address that a lane gives for rows of 8x8 matrices, and the register of each matrix."""
        if "m8n8" not in each.words or "b16" not in each.words or f"x{len(registers)}" not in each.words:
            raise self._refused(each)
        self._whole_warp()
        place = self._place(address, _UINT8, each)
        return self._declared("lockstep row", _UINT64, ir.Cast(_UINT64, place.pointer)), registers

    def _do_cp(self, each: ptx.Instruction) -> None:
        """Lower a copy that goes on while the thread does, or the wait for such copies."""
        match each.words:
            case ("async", "mbarrier", "arrive", *rest):
                at, more = self._barrier(each.operands[0], each), number_of(_UINT32, int("noinc" not in rest))
                self.made.append(self._evaluated(phase(self.lower, "bind", at, more, start_of(self.cursor))))
            case ("async", "bulk", "commit_group"):
                self.made.append(self._evaluated(ir.AsyncCommit(VOID, "bulk")))
            case ("async", "bulk", "wait_group", *_):
                left = self._value(each.operands[0], _UINT64, each)
                self.made.append(self._evaluated(ir.AsyncWait(VOID, left, "bulk")))
            case ("async", "bulk", "shared::cluster" | "shared::cta", "global", *_):
                to, source, size, barrier, *_ = each.operands
                self._bulk(each, self._barrier(to, each), self._pointer(source, each), size, barrier)
            case ("async", "bulk", "global", "shared::cta", *_):
                to, source, size, *_ = each.operands
                self._bulk(each, self._pointer(to, each), self._barrier(source, each), size, "")
            case ("async", "commit_group"):
                self.made.append(self._evaluated(ir.AsyncCommit(VOID)))
            case ("async", "wait_all"):
                self.made.append(self._evaluated(ir.AsyncWait(VOID, None)))
            case ("async", "wait_group"):
                left = self._value(each.operands[0], _UINT64, each)
                self.made.append(self._evaluated(ir.AsyncWait(VOID, left)))
            case ("async", "ca" | "cg", "shared" | "shared::cta", "global", *_):
                to, source, size, *given = each.operands
                self.made.append(
                    self._evaluated(
                        ir.AsyncCopy(
                            VOID,
                            self._barrier(to, each),
                            self._pointer(source, each),
                            self._value(size, _UINT64, each),
                            self._value(given[0], _UINT64, each) if given else None,
                            start_of(self.cursor),
                        )
                    )
                )
            case _:
                raise self._refused(each)

    def _bulk(self, each: ptx.Instruction, to: ir.Expression, source: ir.Expression, size: str, barrier: str) -> None:
        waits = self._barrier(barrier, each) if barrier else None
        self.lower.scope.function.has_phases |= bool(barrier)
        copy = ir.BulkCopy(VOID, to, source, self._value(size, _UINT32, each), waits, start_of(self.cursor))
        self.made.append(self._evaluated(copy))

    def _barrier(self, text: str, each: ptx.Instruction) -> ir.Expression:
        """Return the pointer for an address of shared memory, such as a barrier's."""
        return self._place(text, _UINT8, replace(each, words=("shared",))).pointer

    def _pointer(self, text: str, each: ptx.Instruction) -> ir.Expression:
        """Return the pointer for an address of global memory."""
        return self._place(text, _UINT8, replace(each, words=("global",))).pointer

    def _do_mbarrier(self, each: ptx.Instruction) -> None:
        position = start_of(self.cursor)
        one = number_of(_UINT32, 1)

        def does(op: str, at: ir.Expression, argument: ir.Expression) -> None:
            self.made.append(self._evaluated(phase(self.lower, op, at, argument, position)))

        match each.words:
            case ("init", *_):
                does("init", self._barrier(each.operands[0], each), self._value(each.operands[1], _UINT32, each))
            case ("inval", *_):
                return
            case ("expect_tx" | "complete_tx" as op, *_):
                at, amount = self._barrier(each.operands[0], each), self._value(each.operands[1], _UINT32, each)
                does(op.removesuffix("_tx"), at, amount)
            case ("arrive" | "arrive_drop" as op, *rest) if "noComplete" not in rest:
                target, address, *given = each.operands
                at = self._barrier(address, each)
                count: ir.Expression = one
                if given and "expect_tx" in rest:
                    does("expect", at, self._value(given[0], _UINT32, each))
                elif given:
                    count = self._value(given[0], _UINT32, each)
                arrived = phase(self.lower, "drop" if op.endswith("drop") else "arrive", at, count, position)
                self._store(target, arrived, each)
            case ("test_wait" | "try_wait", *_):
                target, address, parity, *_ = each.operands
                at = self._barrier(address, each)
                over = phase(self.lower, "test", at, self._value(parity, _UINT32, each), position)
                if "until" in each.words:
                    waits = ir.Loop(ir.Unary(BOOL, "!", over), None, ir.Block(()), True, position)
                    self.made.append(waits)
                else:
                    self._store(target, over, each)
            case _:
                raise self._refused(each)

    def _do_activemask(self, each: ptx.Instruction) -> None:
        self._warp(each, each.operands[0], _UINT32, "__activemask", ())

    def _do_bar(self, each: ptx.Instruction) -> None:
        if each.modifiers == ("warp",):
            lanes = self._value(each.operands[0], _UINT32, each)
            self.made.append(self._evaluated(ir.Fence(VOID, "__syncwarp", start_of(self.cursor), lanes)))
        elif each.modifiers or each.operands != ("0",):
            raise refuse(self.cursor, "a barrier of some of a block's threads", instead="Use __syncthreads().")
        else:
            self.made.append(ir.Barrier(start_of(self.cursor)))

    def _do_barrier(self, each: ptx.Instruction) -> None:
        match each.words:
            case ("cluster", "arrive" | "wait" as part, *_):
                self.made.append(self._evaluated(cluster_barrier(self.lower, part, start_of(self.cursor))))
            case _:
                self._do_bar(each)

    def _do_mapa(self, each: ptx.Instruction) -> None:
        """Lower an address of another block of the cluster: a number of shared memory's, or a pointer."""
        target, address, rank = each.operands
        position, at = start_of(self.cursor), self._value(rank, _UINT32, each)
        type = self._type(each.types[-1], each)
        is_number = "shared::cluster" in each.words
        pointer: ir.Expression = ir.Cast(Pointer(_UINT8), self._value(address, type, each))
        if is_number:
            pointer = ir.SharedAddress(Pointer(_UINT8), self._value(address, type, each), position)
        mapped: ir.Expression = ir.ClusterAddress(Pointer(_UINT8), pointer, at, position)
        self._store(target, ir.SharedAddress(type, mapped, position) if is_number else mapped, each)

    def _do_membar(self, each: ptx.Instruction) -> None:
        name = next((_FENCES[word] for word in each.words if word in _FENCES), "__threadfence")
        self.made.append(self._evaluated(ir.Fence(VOID, name, start_of(self.cursor))))

    def _do_fence(self, each: ptx.Instruction) -> None:
        if "proxy" in each.words:
            self.made.append(self._evaluated(ir.Fence(VOID, "fence.proxy.async", start_of(self.cursor))))
        elif "mbarrier_init" in each.words:
            self.made.append(self._evaluated(ir.Fence(VOID, "fence.mbarrier_init", start_of(self.cursor))))
        else:
            self._do_membar(each)

    def _do_trap(self, each: ptx.Instruction) -> None:
        stops = ir.Assertion(VOID, number_of(BOOL, 0), "trap is not reached", start_of(self.cursor))
        self.made.append(self._evaluated(stops))

    def _with_carry(self, each: ptx.Instruction, first: ir.Expression, second: ir.Expression, type: str) -> None:
        """Add or subtract with the carry that was kept, where it is asked for, and keep the next one."""
        kind = "subc" if each.operation.startswith("sub") else "addc"
        carry = self._carry()
        before: ir.Expression = carry if each.operation in ("addc", "subc", "madc") else number_of(_UINT32, 0)
        unsigned = "u" + type[1:]
        held = [self._declared(f"lockstep {number}", value.type, value) for number, value in enumerate((first, second))]
        operands = [*held, before]
        value = self._call(each, f"{kind}_{unsigned}", operands)
        result = self._declared("lockstep result", value.type, value)
        if "cc" in each.modifiers:
            carried = self._call(each, f"{kind}_carry_{unsigned}", operands)
            self.made.append(self._evaluated(ir.Assign(_UINT32, carry, carried)))
        self._store(each.operands[0], result, each)

    def _carry(self) -> ir.Local:
        """Return the carry, which lasts from one statement of a function to the next."""
        scope = self.lower.scope
        if scope.carry is None:
            scope.carry = ir.Local(_UINT32, scope.new_slot(), "carry")
            zero = number_of(_UINT32, 0)
            scope.declared_first.append(ir.Declare(scope.carry.slot, _UINT32, zero, start_of(self.cursor), "carry"))
        return scope.carry

    def _sum(self, each: ptx.Instruction) -> None:
        type = self._type(each.types[-1], each)
        unsigned = Scalar(f"uint{8 * type.size}")
        _, left, right = each.operands
        self._with_carry(each, self._value(left, unsigned, each), self._value(right, unsigned, each), each.types[-1])

    def _do_addc(self, each: ptx.Instruction) -> None:
        self._sum(each)

    def _do_subc(self, each: ptx.Instruction) -> None:
        self._sum(each)

    def _do_add(self, each: ptx.Instruction) -> None:
        self._plain_or(each, self._sum)

    def _do_sub(self, each: ptx.Instruction) -> None:
        self._plain_or(each, self._sum)

    def _do_mad(self, each: ptx.Instruction) -> None:
        self._plain_or(each, self._do_madc)

    def _plain_or(self, each: ptx.Instruction, with_carry: Any) -> None:
        if "cc" in each.modifiers:
            with_carry(each)
            return
        target, *operands = each.operands
        self._store(target, self._call(each, "_".join((each.operation, *each.modifiers, *each.types)), operands), each)

    def _do_madc(self, each: ptx.Instruction) -> None:
        _, left, right, more = each.operands
        type = self._type(each.types[-1], each)
        product = self._call(each, f"mul_{each.modifiers[0]}_{each.types[-1]}", [left, right])
        unsigned = Scalar(f"uint{8 * type.size}")
        self._with_carry(each, self._as(product, unsigned), self._value(more, unsigned, each), each.types[-1])


def _only_sums(parsed: list[ptx.Instruction]) -> frozenset[str]:
    """Return the registers of a statement that it uses once, as sums of a product by a warpgroup."""
    sums: set[str] = set()
    others: list[str] = []
    for each in parsed:
        is_product = each.words[:1] == ("mma_async",)
        names = [name for operand in each.operands[is_product:] for name in re.findall(r"%\d+", operand)]
        if is_product:
            own = re.findall(r"%\d+", each.operands[0])
            others += sums.intersection(own)
            sums.update(own)
        others += names
    return frozenset(sums.difference(others))


def _number(text: str) -> int | float | None:
    """Return a number as PTX writes it."""
    if found := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return float(struct.unpack(">f", bytes.fromhex(found[1]))[0])
    if found := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", text):
        return float(struct.unpack(">d", bytes.fromhex(found[1]))[0])
    try:
        return int(text.rstrip("U"), 0)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None
