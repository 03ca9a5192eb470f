"""Expressions that read and write bit fields: some bits of a storage unit."""

from __future__ import annotations

from collections.abc import Sequence

from gpu.simulator import ir
from gpu.simulator.frontend.lowering.constant_folding import fold_constants
from gpu.simulator.frontend.lowering.conversions import build_constant, convert
from gpu.simulator.types import INT32, BitField, Scalar


def read_bits(field: BitField, unit: ir.Expression) -> ir.Expression:
    """Return the value of a bit field from the value of its storage unit."""
    word, bits = _word_of(field)
    value = convert(unit, word, None)
    if field.type.is_signed:
        # Shifts move the sign to the highest bit, and then replicate it.
        value = _shift(word, "<<", value, bits - field.shift - field.width)
        signed = Scalar(f"int{bits}")
        value = _shift(signed, ">>", convert(value, signed, None), bits - field.width)
    else:
        value = _mask(word, _shift(word, ">>", value, field.shift), (1 << field.width) - 1)
    return convert(value, field.type, None)


def insert_bits(field: BitField, unit: ir.Expression, value: ir.Expression) -> ir.Expression:
    """Return the value of a storage unit in which a bit field has a new value, of the field's type."""
    word, bits = _word_of(field)
    mask = ((1 << field.width) - 1) << field.shift
    kept = _mask(word, convert(unit, word, None), ((1 << bits) - 1) ^ mask)
    new = _mask(word, _shift(word, "<<", convert(value, word, None), field.shift), mask)
    return convert(fold_constants(ir.Binary(word, "|", kept, new)), field.unit, None)


def build_unit(fields: Sequence[BitField], values: Sequence[ir.Expression]) -> ir.Expression:
    """Return the value of a storage unit from those of all of its bit fields; the other bits are 0."""
    unit: ir.Expression = build_constant(fields[0].unit, 0)
    for field, value in zip(fields, values, strict=True):
        unit = insert_bits(field, unit, value)
    return unit


def _word_of(field: BitField) -> tuple[Scalar, int]:
    """Return the unsigned type to compute in, and its number of bits."""
    bits = 64 if field.unit.size == 8 else 32
    return Scalar(f"uint{bits}"), bits


def _shift(type: Scalar, operator: str, value: ir.Expression, amount: int) -> ir.Expression:
    return fold_constants(ir.Binary(type, operator, value, build_constant(INT32, amount))) if amount else value


def _mask(type: Scalar, value: ir.Expression, mask: int) -> ir.Expression:
    return fold_constants(ir.Binary(type, "&", value, build_constant(type, mask)))
