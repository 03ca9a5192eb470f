"""Convert clang's types to the IR's, and create the errors for unsupported constructs."""

from __future__ import annotations

from gpu.base.errors import CompileError
from gpu.simulator.frontend.clang.parsing import ClangType, Cursor, CursorKind, TypeKind, get_reported_position
from gpu.simulator.frontend.lowering.closures import get_capture_name, is_closure
from gpu.simulator.frontend.lowering.storage_units import find_storage_units
from gpu.simulator.types import (
    BOOL,
    FUNCTION_POINTER,
    VOID,
    ArrayOf,
    BitField,
    Field,
    Pointer,
    Scalar,
    Struct,
    Type,
    decay,
    leaves,
)

_SIGNED = {TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG, TypeKind.LONGLONG}
_UNSIGNED = {
    TypeKind.CHAR_U,
    TypeKind.UCHAR,
    TypeKind.USHORT,
    TypeKind.UINT,
    TypeKind.ULONG,
    TypeKind.ULONGLONG,
}
_FLOATS = {TypeKind.FLOAT: Scalar("float32"), TypeKind.DOUBLE: Scalar("float64")}
REFERENCES = (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE)


def build_unsupported_error(cursor: Cursor, construct: str, *, advice: str = "") -> CompileError:
    """Return the error for a construct that the simulator does not support; `advice` is the advice."""
    position = get_reported_position(cursor)
    return CompileError(f"{position}: the simulator does not support {construct}.", position=position, advice=advice)


def is_reference(type: ClangType) -> bool:
    """Return whether a type of clang is `T &` or `T &&`."""
    return type.canonical.kind in REFERENCES and not is_function_type(type)


def is_function_type(type: ClangType) -> bool:
    """Return whether a type is a function, or a pointer or reference to one."""
    canonical = type.canonical
    if canonical.kind in (TypeKind.POINTER, *REFERENCES):
        canonical = canonical.pointee.canonical
    return bool(canonical.kind == TypeKind.FUNCTIONPROTO)


def is_instantiated(declaration: Cursor) -> bool:
    """Return whether a class is a template instantiation, of which libclang shows only the fields."""
    return not declaration.children and declaration.template is not None


def find_members(declaration: Cursor) -> tuple[Cursor, ...]:
    """Return the members of a class; for an instantiation, those of its template."""
    template = declaration.template if is_instantiated(declaration) else None
    return (template or declaration.definition or declaration).children


def value_type(type: Type) -> Type:
    """Return the type of a value: an array's is a pointer."""
    return Pointer(type.innermost) if isinstance(type, ArrayOf) else type


class TypeLowering:
    """Converts the types of one program; each struct becomes only one object."""

    def __init__(self) -> None:
        self._structs: dict[Cursor, Struct] = {}
        self._lowered: dict[ClangType, Type] = {}

    def lower(self, type: ClangType, cursor: Cursor) -> Type:
        """Return the IR's type; for a reference, the type it refers to. Errors are reported at `cursor`."""
        canonical = type.canonical
        lowered = self._lowered.get(canonical)
        if lowered is None:
            lowered = self._lowered[canonical] = self._lower_new_type(canonical, cursor, type.spelling)
        return lowered

    def _lower_new_type(self, canonical: ClangType, cursor: Cursor, spelling: str) -> Type:
        kind = canonical.kind
        if kind == TypeKind.VOID:
            return VOID
        if kind == TypeKind.BOOL:
            return BOOL
        if kind in _FLOATS:
            return _FLOATS[kind]
        if kind in _SIGNED:
            return Scalar(f"int{8 * canonical.size}")
        if kind in _UNSIGNED:
            return Scalar(f"uint{8 * canonical.size}")
        if kind == TypeKind.ENUM:
            return self.lower(canonical.declaration.enum_type, cursor)
        if is_function_type(canonical):
            return FUNCTION_POINTER
        if kind == TypeKind.POINTER:
            return Pointer(self.lower(canonical.pointee, cursor))
        if kind in REFERENCES:
            return self.lower(canonical.pointee, cursor)
        if kind == TypeKind.CONSTANTARRAY:
            return ArrayOf(self.lower(canonical.element_type, cursor), canonical.element_count)
        if kind == TypeKind.INCOMPLETEARRAY:
            return ArrayOf(self.lower(canonical.element_type, cursor), 0)
        if kind == TypeKind.RECORD:
            return self._struct(canonical, cursor)
        raise build_unsupported_error(
            cursor, f"the type {spelling}", advice="Use integers, float, double, and structs of them."
        )

    def _struct(self, canonical: ClangType, cursor: Cursor) -> Struct:
        declaration = canonical.declaration
        # Key by declaration: lambdas, and types declared in functions, may share names.
        name = canonical.spelling
        if declaration in self._structs:
            return self._structs[declaration]
        struct = self._structs[declaration] = Struct(name, is_union=declaration.kind == CursorKind.UNION_DECL)
        first = next((field.field_offset // 8 for field in canonical.fields), canonical.size)
        fields = [*self._bases(declaration.definition or declaration, cursor, first)]
        bit_fields = [member for member in canonical.fields if member.is_bit_field]
        units = self._storage_units(canonical, cursor) if bit_fields else []
        for member in canonical.fields:
            if member.is_bit_field:
                fields += [unit for unit in units if unit.parts[0].name == member.spelling]
                continue
            is_named = bool(member.spelling) and "(anonymous " not in member.spelling
            offset = canonical.offset_of(member.spelling) if is_named else member.field_offset
            type = self.lower(member.type, cursor)
            name_in_struct = get_capture_name(member) if is_closure(declaration) else member.spelling
            by_reference = is_reference(member.type)
            field_type = Pointer(decay(type)) if by_reference else type
            fields.append(Field(name_in_struct, field_type, offset // 8, type if by_reference else None))
        struct.fields, struct.size = tuple(fields), max(canonical.size, 1)
        struct.alignment = canonical.alignment
        return struct

    def _storage_units(self, canonical: ClangType, cursor: Cursor) -> list[Field]:
        """Return the storage units of a struct's bit fields; those of a union are separate."""
        members = canonical.fields
        is_union = canonical.declaration.kind == CursorKind.UNION_DECL
        places: dict[Cursor, tuple[int, int]] = {}
        for group in [(member,) for member in members] if is_union else [members]:
            found = find_storage_units(group, canonical.size)
            if found is None:
                raise build_unsupported_error(
                    cursor,
                    f"the bit fields of {canonical.spelling}, which share bytes with other members",
                    advice="Leave out attributes that pack the members, or use shifts and masks.",
                )
            places |= found
        parts: dict[tuple[int, int, str], list[BitField]] = {}
        for member, (offset, size) in places.items():
            if not member.spelling:
                continue
            type = self.lower(member.type, cursor)
            assert isinstance(type, Scalar)
            shift, width = member.field_offset - 8 * offset, min(member.bit_width, 8 * type.size)
            part = BitField(member.spelling, type, Scalar(f"uint{8 * size}"), offset, shift, width)
            parts.setdefault((offset, size, member.spelling if is_union else ""), []).append(part)
        return [
            Field(", ".join(part.name for part in each), each[0].unit, each[0].offset, parts=tuple(each))
            for each in parts.values()
        ]

    def _bases(self, definition: Cursor, cursor: Cursor, start: int) -> list[Field]:
        """Return the base classes as fields; libclang gives no offsets, so the first nonempty base is at the start."""
        bases: list[Field] = []
        for base in find_members(definition):
            if base.kind == CursorKind.CXX_BASE_SPECIFIER:
                if is_instantiated(definition) and base.type.canonical.kind != TypeKind.RECORD:
                    # libclang does not show an instantiation's dependent base class, so treat it as raw bytes.
                    alignment = next(size for size in (8, 4, 2, 1) if start % size == 0)
                    return [Field("", Struct("a base class", (), start, alignment, is_union=True), 0)] if start else []
                inherited = self.lower(base.type, cursor)
                if bases and leaves(inherited):
                    raise build_unsupported_error(
                        cursor, f"{definition.spelling}, which has several base classes", advice="Make them members."
                    )
                bases.append(Field("", inherited, 0))
        return bases
