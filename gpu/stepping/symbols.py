"""Values as symbols: which elements of the input each was made from, and how: x3, x2+x3, Σ x[0..7], min x[0..7].

They are worked out from what was recorded. Sums, products, least and greatest are named where each element counts once;
of all else a symbol says only what it was made from: ƒ x[0..7].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gpu.stepping.dataflow.dataflow import CellTerm, Dataflow
from gpu.stepping.dataflow.row import Row

SUM, PRODUCT, LEAST, GREATEST, ANY = "Σ", "Π", "min", "max", "ƒ"

_OPERATORS = {
    "+": SUM, "atomic add": SUM, "*": PRODUCT, "min": LEAST, "fminf": LEAST, "atomic min": LEAST,
    "max": GREATEST, "fmaxf": GREATEST, "atomic max": GREATEST,
}  # fmt: skip
_CHOICE = "?:"
_THE_INPUT = "x"
"""What the elements of the input are called, where one array is it."""


@dataclass(frozen=True)
class Symbol:
    """What a value is in terms of the input.

    Parameters
    ----------
    operator : str
        SUM, PRODUCT, LEAST, GREATEST or ANY; "" for a single element.
    elements : tuple of (str, int)
        For each array its name, and its elements as the bits of a number.
    """

    operator: str
    elements: tuple[tuple[str, int], ...]

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        """What it may be written as, longest first."""
        if not self.elements:
            return ("·",)
        if not self.operator:
            (name, bits) = self.elements[0]
            return (f"{name}{bits.bit_length() - 1}",)
        whole = [f"{name}[{_listed(bits)}]" for name, bits in self.elements]
        short = [f"{name}{_listed(bits)}" for name, bits in self.elements]
        forms = [f"{self.operator} {', '.join(whole)}", f"{self.operator}{','.join(short)}"]
        single = [f"{name}{place}" for name, bits in self.elements for place in _places(bits)]
        if self.operator == SUM and len(single) == 2:
            forms.insert(0, "+".join(single))
        if len(self.elements) == 1:
            forms.append(_listed(self.elements[0][1]))
        return tuple(forms)

    def text(self, room: int = 40) -> str:
        """Return it in at most `room` characters, as much as there is room for; "" where there is too little."""
        return next((form for form in self._forms if len(form) <= room), "")


class Symbols:
    """The symbols of a dataflow's cells.

    Parameters
    ----------
    dataflow : Dataflow
    """

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._main = _main_input(dataflow)
        self._rows: list[list[Symbol]] = []
        self._of_writer: dict[tuple[int, int], Symbol] = {}

    def of_row(self, number: int) -> list[Symbol]:
        """Return the symbols of a row's cells."""
        while len(self._rows) <= number:
            self._rows.append(list(self._of(self._dataflow.rows[len(self._rows)])))
        return self._rows[number]

    def complete(self) -> Symbols:
        """Work all of them out, which takes a moment where there is much; return itself."""
        if self._dataflow.rows:
            self.of_row(len(self._dataflow.rows) - 1)
        return self

    def _of(self, row: Row) -> Iterator[Symbol]:
        """Yield the symbols of the next row."""
        operator = _OPERATORS.get(row.operator[0], "") if len(row.operator) == 1 else ""
        sources, counts = row.sources, row.count.tolist()
        borders = np.searchsorted(sources[:, 0], np.arange(row.cells.size + 1)).tolist()
        pairs = [tuple(each) for each in sources[:, 1:].tolist()]
        writers, cells = row.writers.tolist(), row.cells.tolist()
        done: list[Symbol] = []
        for cell, made in enumerate(row.made.tolist()):
            own = pairs[borders[cell] : borders[cell + 1]]
            key = (row.storage.number, writers[cell])
            if not made:
                found = self._kept(row, cell, cells[cell], key)
            elif not counts[cell] and len(own) == 1:
                found = self._seen(own[0], row.number, done)
            elif operator and counts[cell] == len(own) - 1:
                parts = [self._part(each, row.number, done, operator) for each in own]
                found = _combined(operator, [part for part in parts if part is not None])
            else:
                term = self._dataflow.term(row.number, cell)
                found = (self._of_term(term, row.number, done) if term is not None else None) or Symbol(ANY, ())
            if writers[cell] >= 0:
                self._of_writer[key] = found
            done.append(found)
            yield found

    def _kept(self, row: Row, cell: int, element: int, key: tuple[int, int]) -> Symbol:
        if key in self._of_writer:
            return self._of_writer[key]
        if not row.is_input and (before := self._dataflow.sources_of(row.number, cell)):
            return self._seen(before[0], row.number, [])
        if not row.is_input:
            return Symbol(ANY, ())
        name = _THE_INPUT if row.storage.number == self._main else row.storage.name
        return Symbol("", ((name, 1 << element),))

    def _part(self, at: tuple[int, ...], row: int, done: list[Symbol], operator: str) -> Symbol | None:
        """Return the symbol of what is combined; None for a place that a sum began at with 0."""
        origin = self._dataflow.rows[at[0]]
        if operator == SUM and origin.is_input and origin.storage.number != self._main and not origin.value[at[1]]:
            return None
        return self._seen(at, row, done)

    def _seen(self, at: tuple[int, ...], row: int, done: list[Symbol]) -> Symbol:
        """Return the symbol of a cell that comes before."""
        if at[0] == row:
            return done[at[1]] if at[1] < len(done) else Symbol(ANY, ())
        return self._rows[at[0]][at[1]]

    def _of_term(self, term: CellTerm, row: int, done: list[Symbol], within: str = "") -> Symbol | None:
        """Return the symbol of a term, of which an operator makes something; None for a constant."""
        if not term.operator:
            return self._part(term.seen, row, done, within) if term.seen is not None else None
        operator = _OPERATORS.get(term.operator, ANY)
        parts = [self._of_term(each, row, done, operator) for each in term.operands]
        known = [part for part in parts if part is not None]
        if not known:
            return None
        if term.operator == _CHOICE:
            chosen = [part for part, each in zip(parts, term.operands, strict=True)
                      if part is not None and _same(each.value, term.value)]  # fmt: skip
            return chosen[0] if chosen else _combined(ANY, known)
        constants = [each.value for part, each in zip(parts, term.operands, strict=True) if part is None]
        if all(_is_nothing(operator, value, term.value) for value in constants):
            return known[0] if len(known) == 1 and operator != ANY else _combined(operator, known)
        return _combined(ANY, known)


def _main_input(dataflow: Dataflow) -> int:
    """Return the number of the storage that is the input: by far the largest that was given; -1 where none is."""
    given = {row.storage.number: row.storage.count for row in dataflow.rows if row.is_input and row.launch == 0}
    ordered = sorted(given, key=lambda number: -given[number])
    alone = len(ordered) == 1 or (len(ordered) > 1 and given[ordered[0]] > 2 * given[ordered[1]])
    return ordered[0] if alone else -1


def _combined(operator: str, parts: list[Symbol]) -> Symbol:
    """Return symbols combined: by the operator, where all are of it and no element counts twice."""
    elements: dict[str, int] = {}
    once = all(part.operator in ("", operator) and part.elements for part in parts)
    for part in parts:
        for name, bits in part.elements:
            once = once and (operator in (LEAST, GREATEST) or not elements.get(name, 0) & bits)
            elements[name] = elements.get(name, 0) | bits
    return Symbol(operator if once else ANY, tuple(elements.items()))


def _is_nothing(operator: str, constant: Any, result: Any) -> bool:
    """Return whether a constant changes nothing where it is combined by an operator."""
    if constant is None:
        return False
    if operator in (LEAST, GREATEST):
        return not _same(constant, result)
    return bool(constant == {SUM: 0, PRODUCT: 1}.get(operator))


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or bool(one != one and other != other)


def _places(bits: int) -> list[int]:
    """Return which bits of a number are set, ascending."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def _listed(bits: int) -> str:
    """Return elements in words: 3, 0..7, 0..12:4 with a stride, 0,3,4, or how many they are."""
    places = _places(bits)
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
