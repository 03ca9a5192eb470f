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
    asm.define(_ProductWriter(type, length).write(name))
    arguments = ", ".join(f"ptr {address}" for address in (result, *addresses))
    asm.emit(f"call void {name}(i64 {column}, {arguments})")


class _ProductWriter:
    """Writer of the function for an element type and a number of registers per factor.

    It adds products one by one in the order of `executor.exchanges`, float32 as float64.
    """

    def __init__(self, type: Scalar, length: int) -> None:
        self._type, self._length, self._element = type, length, value_type(type)
        wide = "double" if type.is_float else self._element
        self._narrow_vector = f"<{_VECTOR_LANES} x {self._element}>"
        self._warp_vector = f"<{WARP} x {self._element}>"
        self._wide_vector = f"<{_VECTOR_LANES} x {wide}>"
        self._steps = [(number, step) for number in range(length) for step in range(_HOLDER_LANES)]
        self._lines: list[str] = []

    def write(self, name: str) -> str:
        factors = [f"ptr %{each}.{number}" for each in ("rows", "columns") for number in range(self._length)]
        parameters = ", ".join(["i64 %column", "ptr %result", "ptr %sum", *factors])
        self._lines += [f"define internal void {name}({parameters}) noinline nounwind {{", "entry:"]
        columns = self._write_columns()
        self._lines += [
            "  br label %next",
            "next:",
            "  %lane = phi i64 [ 0, %entry ], [ %after, %next ]",
            f"  %sum.at = getelementptr {self._element}, ptr %sum, i64 %lane",
            f"  %before.all = load {self._narrow_vector}, ptr %sum.at, align {self._type.size}",
        ]
        total = self._write_sums(self._widen("%before.all"), columns)
        if self._is_widened:
            self._lines.append(f"  %rounded = fptrunc {self._wide_vector} {total} to {self._narrow_vector}")
            total = "%rounded"
        self._lines += [
            f"  %result.at = getelementptr {self._element}, ptr %result, i64 %lane",
            f"  store {self._narrow_vector} {total}, ptr %result.at, align {self._type.size}",
            f"  %after = add nuw nsw i64 %lane, {_VECTOR_LANES}",
            f"  %over = icmp eq i64 %after, {WARP}",
            "  br i1 %over, label %leave, label %next",
            "leave:",
            "  ret void",
            "}",
        ]
        return "\n".join(self._lines)

    @property
    def _is_widened(self) -> bool:
        return self._element == "float"

    def _widen(self, value: str) -> str:
        if not self._is_widened:
            return value
        self._lines.append(f"  {value}.wide = fpext {self._narrow_vector} {value} to {self._wide_vector}")
        return f"{value}.wide"

    def _write_columns(self) -> list[str]:
        """Load the elements of the columns; return a vector of the factors of each step."""
        self._lines.append(f"  %before = mul i64 %column, {_HOLDER_LANES}")
        for number in range(self._length):
            self._lines += [
                f"  %start.{number} = getelementptr {self._element}, ptr %columns.{number}, i64 %before",
                f"  %held.{number} = load {self._warp_vector}, ptr %start.{number}, align {self._type.size}",
            ]
        columns = []
        for number, step in self._steps:
            # A lane holds every other column, and so all of those of `%column`.
            lanes = [2 * _HOLDER_LANES * (lane % _HOLDER_LANES) + step for lane in range(_VECTOR_LANES)]
            self._lines.append(f"  %column.{number}.{step} = {_shuffle(self._warp_vector, f'%held.{number}', lanes)}")
            columns.append(self._widen(f"%column.{number}.{step}"))
        return columns

    def _write_sums(self, total: str, columns: Sequence[str]) -> str:
        """Load two rows and add their products with the columns; return the sums."""
        times, plus = ("fmul", "fadd") if self._type.is_float else ("mul", "add")
        vector, rows = self._wide_vector, []
        for number in range(self._length):
            self._lines += [
                f"  %row.at.{number} = getelementptr {self._element}, ptr %rows.{number}, i64 %lane",
                f"  %row.{number} = load {self._narrow_vector}, ptr %row.at.{number}, align {self._type.size}",
            ]
            rows.append(self._widen(f"%row.{number}"))
        for (number, step), column in zip(self._steps, columns, strict=True):
            at = f"{number}.{step}"
            lanes = [lane // _HOLDER_LANES * _HOLDER_LANES + step for lane in range(_VECTOR_LANES)]
            self._lines += [
                f"  %factor.{at} = {_shuffle(vector, rows[number], lanes)}",
                f"  %product.{at} = {times} {vector} %factor.{at}, {column}",
                f"  %total.{at} = {plus} {vector} {total}, %product.{at}",
            ]
            total = f"%total.{at}"
        return total


def _shuffle(type: str, value: str, lanes: Sequence[int]) -> str:
    mask = ", ".join(f"i32 {lane}" for lane in lanes)
    return f"shufflevector {type} {value}, {type} poison, <{len(lanes)} x i32> <{mask}>"
