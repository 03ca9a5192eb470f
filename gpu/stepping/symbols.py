"""Values as symbols: the input elements from which each value was computed: x3, x2+x3, Σ x[0..7], min x[0..7].

Symbols are derived from the recording. Sums, products, minima and maxima are named if each element counts once; any
other symbol lists only the elements: ƒ x[0..7].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gpu.stepping.dataflow.dataflow import CellTerm, Dataflow
from gpu.stepping.dataflow.rows import Row

SUM, PRODUCT, MINIMUM, MAXIMUM, FUNCTION = "Σ", "Π", "min", "max", "ƒ"

_OPERATORS = {
    "+": SUM, "atomic add": SUM, "*": PRODUCT, "min": MINIMUM, "fminf": MINIMUM, "atomic min": MINIMUM,
    "max": MAXIMUM, "fmaxf": MAXIMUM, "atomic max": MAXIMUM,
}  # fmt: skip
_CHOICE = "?:"
_INPUT_NAME = "x"
"""The name of the input's elements, if one array is the main input."""


@dataclass(frozen=True)
class Symbol:
    """A value in terms of the input.

    Parameters
    ----------
    operator : str
        SUM, PRODUCT, LEAST, GREATEST or ANY; "" for a single element.
    elements : tuple of (str, int)
        For each array its name, and a bit mask of its elements.
    """

    operator: str
    elements: tuple[tuple[str, int], ...]

    @cached_property
    def _candidate_texts(self) -> tuple[str, ...]:
        """The possible texts, longest first."""
        if not self.elements:
            return ("·",)
        if not self.operator:
            (name, bits) = self.elements[0]
            return (f"{name}{bits.bit_length() - 1}",)
        long = [f"{name}[{_format_elements(bits)}]" for name, bits in self.elements]
        short = [f"{name}{_format_elements(bits)}" for name, bits in self.elements]
        forms = [f"{self.operator} {', '.join(long)}", f"{self.operator}{','.join(short)}"]
        single = [f"{name}{element}" for name, bits in self.elements for element in _find_set_bits(bits)]
        if self.operator == SUM and len(single) == 2:
            forms.insert(0, "+".join(single))
        if len(self.elements) == 1:
            forms.append(_format_elements(self.elements[0][1]))
        return tuple(forms)

    def format_text(self, max_length: int = 40) -> str:
        """Return the longest text of at most `max_length` characters; "" if none fits."""
        return next((form for form in self._candidate_texts if len(form) <= max_length), "")


class Symbols:
    """The symbols of a dataflow's cells."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._main = _find_main_input(dataflow)
        self._rows: list[list[Symbol]] = []
        self._symbols_by_writer: dict[tuple[int, int], Symbol] = {}

    def find_row_symbols(self, number: int) -> list[Symbol]:
        """Return the symbols of the cells in a row."""
        while len(self._rows) <= number:
            self._rows.append(list(self._compute_row_symbols(self._dataflow.rows[len(self._rows)])))
        return self._rows[number]

    def compute_all(self) -> Symbols:
        """Compute all symbols, which can take time for a large recording, and return this object."""
        if self._dataflow.rows:
            self.find_row_symbols(len(self._dataflow.rows) - 1)
        return self

    def _compute_row_symbols(self, row: Row) -> Iterator[Symbol]:
        """Yield the symbols of the cells in the next row."""
        operator = _OPERATORS.get(row.operators[0], "") if len(row.operators) == 1 else ""
        sources, counts = row.sources, row.operation_counts.tolist()
        borders = np.searchsorted(sources[:, 0], np.arange(row.cells.size + 1)).tolist()
        pairs = [tuple(each) for each in sources[:, 1:].tolist()]
        writers, cells = row.writers.tolist(), row.cells.tolist()
        row_symbols: list[Symbol] = []
        for cell, is_computed in enumerate(row.computed.tolist()):
            operands = pairs[borders[cell] : borders[cell + 1]]
            key = (row.storage.number, writers[cell])
            if not is_computed:
                symbol = self._find_unchanged_symbol(row, cell, cells[cell], key)
            elif not counts[cell] and len(operands) == 1:
                symbol = self._find_earlier_symbol(operands[0], row.number, row_symbols)
            elif operator and counts[cell] == len(operands) - 1:
                parts = [self._find_operand_symbol(operand, row.number, row_symbols, operator) for operand in operands]
                symbol = _combine_symbols(operator, [part for part in parts if part is not None])
            else:
                term = self._dataflow.build_term(row.number, cell)
                symbol = (
                    self._build_term_symbol(term, row.number, row_symbols) if term is not None else None
                ) or Symbol(FUNCTION, ())
            if writers[cell] >= 0:
                self._symbols_by_writer[key] = symbol
            row_symbols.append(symbol)
            yield symbol

    def _find_unchanged_symbol(self, row: Row, cell: int, element: int, key: tuple[int, int]) -> Symbol:
        if key in self._symbols_by_writer:
            return self._symbols_by_writer[key]
        if not row.is_input and (previous := self._dataflow.find_sources(row.number, cell)):
            return self._find_earlier_symbol(previous[0], row.number, [])
        if not row.is_input:
            return Symbol(FUNCTION, ())
        name = _INPUT_NAME if row.storage.number == self._main else row.storage.name
        return Symbol("", ((name, 1 << element),))

    def _find_operand_symbol(
        self, location: tuple[int, ...], row: int, row_symbols: list[Symbol], operator: str
    ) -> Symbol | None:
        """Return the symbol of an operand; None for an initial 0 of a sum."""
        origin = self._dataflow.rows[location[0]]
        if (
            operator == SUM
            and origin.is_input
            and origin.storage.number != self._main
            and not origin.value[location[1]]
        ):
            return None
        return self._find_earlier_symbol(location, row, row_symbols)

    def _find_earlier_symbol(self, location: tuple[int, ...], row: int, row_symbols: list[Symbol]) -> Symbol:
        """Return the symbol of an earlier cell."""
        if location[0] > row:  # lanes that run independently may read a value that a later row shows
            return Symbol(FUNCTION, ())
        if location[0] == row:
            return row_symbols[location[1]] if location[1] < len(row_symbols) else Symbol(FUNCTION, ())
        return self._rows[location[0]][location[1]]

    def _build_term_symbol(
        self, term: CellTerm, row: int, row_symbols: list[Symbol], outer_operator: str = ""
    ) -> Symbol | None:
        """Return the symbol of an operator's term; None for a constant."""
        if not term.operator:
            return (
                self._find_operand_symbol(term.location, row, row_symbols, outer_operator)
                if term.location is not None
                else None
            )
        operator = _OPERATORS.get(term.operator, FUNCTION)
        parts = [self._build_term_symbol(operand, row, row_symbols, operator) for operand in term.operands]
        symbols = [part for part in parts if part is not None]
        if not symbols:
            return None
        if term.operator == _CHOICE:
            chosen = [part for part, operand in zip(parts, term.operands, strict=True)
                      if part is not None and _values_equal(operand.value, term.value)]  # fmt: skip
            return chosen[0] if chosen else _combine_symbols(FUNCTION, symbols)
        constants = [operand.value for part, operand in zip(parts, term.operands, strict=True) if part is None]
        if all(_is_neutral(operator, value, term.value) for value in constants):
            return symbols[0] if len(symbols) == 1 and operator != FUNCTION else _combine_symbols(operator, symbols)
        return _combine_symbols(FUNCTION, symbols)


def _find_main_input(dataflow: Dataflow) -> int:
    """Return the number of the storage that is the main input, by far the largest one; -1 if there is none."""
    counts = {row.storage.number: row.storage.count for row in dataflow.rows if row.is_input and row.launch == 0}
    ordered = sorted(counts, key=lambda number: -counts[number])
    has_main = len(ordered) == 1 or (len(ordered) > 1 and counts[ordered[0]] > 2 * counts[ordered[1]])
    return ordered[0] if has_main else -1


def _combine_symbols(operator: str, parts: list[Symbol]) -> Symbol:
    """Combine symbols; the operator is kept if all symbols use it and no element counts twice."""
    elements: dict[str, int] = {}
    is_exact = all(part.operator in ("", operator) and part.elements for part in parts)
    for part in parts:
        for name, bits in part.elements:
            is_exact = is_exact and (operator in (MINIMUM, MAXIMUM) or not elements.get(name, 0) & bits)
            elements[name] = elements.get(name, 0) | bits
    return Symbol(operator if is_exact else FUNCTION, tuple(elements.items()))


def _is_neutral(operator: str, constant: Any, result: Any) -> bool:
    """Return whether a constant is neutral when an operator combines it."""
    if constant is None:
        return False
    if operator in (MINIMUM, MAXIMUM):
        return not _values_equal(constant, result)
    return bool(constant == {SUM: 0, PRODUCT: 1}.get(operator))


def _values_equal(one: Any, other: Any) -> bool:
    return bool(one == other) or bool(one != one and other != other)


def _find_set_bits(bits: int) -> list[int]:
    """Return the positions of the set bits of a number, ascending."""
    places = []
    while bits:
        low = bits & -bits
        places.append(low.bit_length() - 1)
        bits ^= low
    return places


def _format_elements(bits: int) -> str:
    """Format elements: 3, 0..7, 0..12:4 with a stride, 0,3,4, or their number."""
    places = _find_set_bits(bits)
    if len(places) == 1:
        return str(places[0])
    steps = {other - one for one, other in pairwise(places)}
    if len(steps) == 1 and (len(places) > 2 or steps == {1}):
        step = steps.pop()
        return f"{places[0]}..{places[-1]}" + (f":{step}" if step > 1 else "")
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    if len(runs) <= 3:
        return ",".join(str(first) if first == last else f"{first}..{last}" for first, last in runs)
    return f"{len(places)} of {places[0]}..{places[-1]}"
