"""Matrix products of a warp, as functions that all code of a kernel shares, on vectors of the lanes of two rows.

Four consecutive lanes hold a row of a tile, or a column; the lanes of a row hold different columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpu.base.warp import WARP
from gpu.simulator.compiled.llvm.assembly import Assembly, value_type
from gpu.simulator.types import Scalar

_HOLDER_LANES = 4
"""The number of lanes that hold a row, or a column."""
_VECTOR_LANES = 2 * _HOLDER_LANES
"""The number of lanes in a vector."""


def write_product(asm: Assembly, type: Scalar, column: str, addresses: Sequence[str], result: str) -> None:
    """Write one result of a product for each lane of a warp.

    Parameters
    ----------
    asm : Assembly
    type : Scalar
    column : str
        Which of two columns, an i64.
    addresses : sequence of str
        The addresses of the warp's arguments: the accumulators, the elements of each lane's row, and those of its
        column. The memory after the last lane's arguments must be readable.
    result : str
        The address of the results.
    """
    length = (len(addresses) - 1) // 2
    name = f"@matrix.product.{value_type(type)}.{length}"
    asm.define(_product_function(name, type, length))
    arguments = ", ".join(f"ptr {address}" for address in (result, *addresses))
    asm.emit(f"call void {name}(i64 {column}, {arguments})")


def _product_function(name: str, type: Scalar, length: int) -> str:
    """Return the function, which adds products one by one in the order of `executor.exchanges`, float32 as float64."""
    llvm_type = value_type(type)
    wide = "double" if type.is_float else llvm_type
    times, plus = ("fmul", "fadd") if type.is_float else ("mul", "add")
    narrow_vector, warp_vector, wide_vector = (
        f"<{_VECTOR_LANES} x {llvm_type}>",
        f"<{WARP} x {llvm_type}>",
        f"<{_VECTOR_LANES} x {wide}>",
    )
    steps = [(number, step) for number in range(length) for step in range(_HOLDER_LANES)]
    factors = [f"ptr %{each}.{number}" for each in ("rows", "columns") for number in range(length)]
    parameters = ", ".join(["i64 %column", "ptr %result", "ptr %sum", *factors])
    lines = [
        f"define internal void {name}({parameters}) noinline nounwind {{",
        "entry:",
        f"  %before = mul i64 %column, {_HOLDER_LANES}",
    ]

    def widen(value: str) -> str:
        if llvm_type != "float":
            return value
        lines.append(f"  {value}.wide = fpext {narrow_vector} {value} to {wide_vector}")
        return f"{value}.wide"

    for number in range(length):
        lines += [
            f"  %start.{number} = getelementptr {llvm_type}, ptr %columns.{number}, i64 %before",
            f"  %held.{number} = load {warp_vector}, ptr %start.{number}, align {type.size}",
        ]
    columns = []
    for number, step in steps:
        # A lane holds every other column, and so all of those of `%column`.
        lanes = [2 * _HOLDER_LANES * (lane % _HOLDER_LANES) + step for lane in range(_VECTOR_LANES)]
        lines.append(f"  %column.{number}.{step} = {_shuffle(warp_vector, f'%held.{number}', lanes)}")
        columns.append(widen(f"%column.{number}.{step}"))
    lines += [
        "  br label %next",
        "next:",
        "  %lane = phi i64 [ 0, %entry ], [ %after, %next ]",
        f"  %sum.at = getelementptr {llvm_type}, ptr %sum, i64 %lane",
        f"  %before.all = load {narrow_vector}, ptr %sum.at, align {type.size}",
    ]
    total, rows = widen("%before.all"), []
    for number in range(length):
        lines += [
            f"  %row.at.{number} = getelementptr {llvm_type}, ptr %rows.{number}, i64 %lane",
            f"  %row.{number} = load {narrow_vector}, ptr %row.at.{number}, align {type.size}",
        ]
        rows.append(widen(f"%row.{number}"))
    for (number, step), column in zip(steps, columns, strict=True):
        at = f"{number}.{step}"
        lanes = [lane // _HOLDER_LANES * _HOLDER_LANES + step for lane in range(_VECTOR_LANES)]
        lines += [
            f"  %factor.{at} = {_shuffle(wide_vector, rows[number], lanes)}",
            f"  %product.{at} = {times} {wide_vector} %factor.{at}, {column}",
            f"  %total.{at} = {plus} {wide_vector} {total}, %product.{at}",
        ]
        total = f"%total.{at}"
    if llvm_type == "float":
        lines.append(f"  %rounded = fptrunc {wide_vector} {total} to {narrow_vector}")
        total = "%rounded"
    lines += [
        f"  %result.at = getelementptr {llvm_type}, ptr %result, i64 %lane",
        f"  store {narrow_vector} {total}, ptr %result.at, align {type.size}",
        f"  %after = add nuw nsw i64 %lane, {_VECTOR_LANES}",
        f"  %over = icmp eq i64 %after, {WARP}",
        "  br i1 %over, label %leave, label %next",
        "leave:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


def _shuffle(type: str, value: str, lanes: Sequence[int]) -> str:
    mask = ", ".join(f"i32 {lane}" for lane in lanes)
    return f"shufflevector {type} {value}, {type} poison, <{len(lanes)} x i32> <{mask}>"
