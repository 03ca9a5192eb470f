"""Products of tiles by a warp, as functions that all places of a kernel share: in vectors of the lanes of two rows.

A row of a tile is held by 4 lanes side by side, and so is a column; lanes of a row differ in which columns they have.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpu.simulator.compiled.assembly import Assembly, value_type
from gpu.simulator.types import Scalar
from gpu.warp import WARP

_HOLDERS = 4
"""The lanes that hold a row, or a column."""
_AT_ONCE = 2 * _HOLDERS
"""The lanes of a vector."""


def write_product(asm: Assembly, type: Scalar, column: str, places: Sequence[str], result: str) -> None:
    """Write one result of a product for each lane of a warp.

    Parameters
    ----------
    asm : Assembly
    type : Scalar
    column : str
        Which of two columns, an i64.
    places : sequence of str
        The addresses of what the warp's lanes give: what is added to, what each has of its row, and of its column.
        Behind the last lane's there is memory of another one.
    result : str
        The address of what they get.
    """
    length = (len(places) - 1) // 2
    name = f"@matrix.product.{value_type(type)}.{length}"
    asm.define(_function(name, type, length))
    given = ", ".join(f"ptr {place}" for place in (result, *places))
    asm.emit(f"call void {name}(i64 {column}, {given})")


def _function(name: str, type: Scalar, length: int) -> str:
    """Return the function: it adds products one by one, of float32 as float64, in the order of `executor.exchanges`."""
    what = value_type(type)
    wide = "double" if type.is_float else what
    times, plus = ("fmul", "fadd") if type.is_float else ("mul", "add")
    some, of_warp, many = f"<{_AT_ONCE} x {what}>", f"<{WARP} x {what}>", f"<{_AT_ONCE} x {wide}>"
    turns = [(number, turn) for number in range(length) for turn in range(_HOLDERS)]
    factors = [f"ptr %{each}.{number}" for each in ("rows", "columns") for number in range(length)]
    parameters = ", ".join(["i64 %column", "ptr %result", "ptr %sum", *factors])
    lines = [
        f"define internal void {name}({parameters}) noinline nounwind {{",
        "entry:",
        f"  %before = mul i64 %column, {_HOLDERS}",
    ]

    def widened(value: str) -> str:
        if what != "float":
            return value
        lines.append(f"  {value}.wide = fpext {some} {value} to {many}")
        return f"{value}.wide"

    for number in range(length):
        lines += [
            f"  %start.{number} = getelementptr {what}, ptr %columns.{number}, i64 %before",
            f"  %held.{number} = load {of_warp}, ptr %start.{number}, align {type.size}",
        ]
    columns = []
    for number, turn in turns:
        # Of the columns a lane has every other one, and so all of `%column`.
        lanes = [2 * _HOLDERS * (lane % _HOLDERS) + turn for lane in range(_AT_ONCE)]
        lines.append(f"  %column.{number}.{turn} = {_shuffled(of_warp, f'%held.{number}', lanes)}")
        columns.append(widened(f"%column.{number}.{turn}"))
    lines += [
        "  br label %next",
        "next:",
        "  %lane = phi i64 [ 0, %entry ], [ %after, %next ]",
        f"  %sum.at = getelementptr {what}, ptr %sum, i64 %lane",
        f"  %before.all = load {some}, ptr %sum.at, align {type.size}",
    ]
    total, rows = widened("%before.all"), []
    for number in range(length):
        lines += [
            f"  %row.at.{number} = getelementptr {what}, ptr %rows.{number}, i64 %lane",
            f"  %row.{number} = load {some}, ptr %row.at.{number}, align {type.size}",
        ]
        rows.append(widened(f"%row.{number}"))
    for (number, turn), column in zip(turns, columns, strict=True):
        at = f"{number}.{turn}"
        lanes = [lane // _HOLDERS * _HOLDERS + turn for lane in range(_AT_ONCE)]
        lines += [
            f"  %factor.{at} = {_shuffled(many, rows[number], lanes)}",
            f"  %product.{at} = {times} {many} %factor.{at}, {column}",
            f"  %total.{at} = {plus} {many} {total}, %product.{at}",
        ]
        total = f"%total.{at}"
    if what == "float":
        lines.append(f"  %rounded = fptrunc {many} {total} to {some}")
        total = "%rounded"
    lines += [
        f"  %result.at = getelementptr {what}, ptr %result, i64 %lane",
        f"  store {some} {total}, ptr %result.at, align {type.size}",
        f"  %after = add nuw nsw i64 %lane, {_AT_ONCE}",
        f"  %over = icmp eq i64 %after, {WARP}",
        "  br i1 %over, label %leave, label %next",
        "leave:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines)


def _shuffled(type: str, value: str, lanes: Sequence[int]) -> str:
    mask = ", ".join(f"i32 {lane}" for lane in lanes)
    return f"shufflevector {type} {value}, {type} poison, <{len(lanes)} x i32> <{mask}>"
