"""Lower `goto` and labels to loops that lanes leave or repeat.

A label that later statements jump to begins a loop, and the jump continues it. A label that earlier statements jump to
ends a loop of one iteration, and the jump leaves it. Lanes that jump forward wait there for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, get_reported_position
from gpu.simulator.frontend.lowering.scope import Scope
from gpu.simulator.frontend.lowering.types import build_unsupported_error
from gpu.simulator.types import BOOL, INT32

_ADVICE = "Use a loop with break or continue, or a function with an early return."


@dataclass(eq=False)
class _Region:
    """Statements `first` to `end` - 1 of a block, which a jump to a label leaves or repeats."""

    label: str
    jump: Literal["break", "continue"]
    first: int
    end: int
    number: int
    cursor: Cursor
    position: SourcePosition


@dataclass(eq=False)
class _Level:
    """A loop or a switch around the current statement; `crossing` are the jumps that also leave what is around it."""

    region: _Region | None = None
    crossing: list[_Region] = field(default_factory=list)


class LabelLowering:
    """The labels of a function, and the loops and switches around the statement that is being lowered.

    Parameters
    ----------
    scope : Scope
        Variables of the function.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._levels: list[_Level] = []
        self._count = 0
        self._variable: ir.Local | None = None

    def lower_block(
        self, children: Sequence[Cursor], lower: Callable[[Cursor], list[ir.Statement]]
    ) -> list[ir.Statement]:
        """Lower the statements of a block that may contain labels.

        Parameters
        ----------
        lower : callable
            Lowers one of them.

        Raises
        ------
        CompileError
            If a forward jump enters a loop of backward jumps.
        """
        names: dict[str, tuple[int, Cursor]] = {}
        statements: list[Cursor | None] = []
        for index, child in enumerate(children):
            statement: Cursor | None = child
            while statement is not None and statement.kind == CursorKind.LABEL_STMT:
                names[statement.spelling] = index, statement
                statement = next(iter(statement.children), None)
            statements.append(statement)
        if not names:
            return [each for child in children for each in lower(child)]
        regions = self._find_regions(names, statements)
        return self._lower_range(statements, regions, 0, len(statements), lower)

    def lower_breakable(self, cursor: Cursor, lower: Callable[[Cursor], ir.Statement]) -> ir.Statement:
        """Lower a loop or a switch; jumps to labels outside of it leave it first, and then go on."""
        level = _Level()
        self._levels.append(level)
        statement = lower(cursor)
        self._levels.pop()
        return self._resume_jumps(statement, level)

    def lower_goto(self, cursor: Cursor) -> ir.Statement:
        """Lower a jump.

        Raises
        ------
        CompileError
            If the label is in a block that is not around the jump.
        """
        name = cursor.children[0].spelling
        for level in self._levels:
            if level.region is not None and level.region.label == name:
                return self._jump(level, get_reported_position(cursor))
        raise build_unsupported_error(cursor, "a goto into another block", advice=_ADVICE)

    def _jump(self, target: _Level, position: SourcePosition) -> ir.Statement:
        region = target.region
        assert region is not None
        *crossed, innermost = self._levels[self._levels.index(target) :]
        if not crossed:
            return ir.Jump(region.jump, position)
        for level in (*crossed[1:], innermost):
            if region not in level.crossing:
                level.crossing.append(region)
        return ir.Block((self._set_destination(region.number, position), ir.Jump("break", position)))

    def _resume_jumps(self, statement: ir.Statement, level: _Level) -> ir.Statement:
        """Add to a loop or a switch the rest of the jumps that left it."""
        rest: list[ir.Statement] = []
        for region in level.crossing:
            jump: ir.Statement = ir.Jump("break", region.position)
            if self._levels[-1].region is region:
                jump = ir.Block((self._set_destination(0, region.position), ir.Jump(region.jump, region.position)))
            number = ir.Const(INT32, np.int32(region.number))
            test = ir.Binary(BOOL, "==", self._destination(region.position), number)
            rest.append(ir.If(test, jump, None, region.position, f"goto {region.label}"))
        return ir.Block((statement, *rest)) if rest else statement

    def _set_destination(self, number: int, position: SourcePosition) -> ir.Statement:
        value = ir.Const(INT32, np.int32(number))
        return ir.Evaluate(ir.Assign(INT32, self._destination(position), value), position)

    def _destination(self, position: SourcePosition) -> ir.Local:
        """Return the variable with the number of the label to which a lane is jumping, or 0."""
        if self._variable is None:
            self._variable = ir.Local(INT32, self._scope.new_slot(), "goto")
            zero = ir.Const(INT32, np.int32(0))
            self._scope.hoisted_declarations.append(ir.Declare(self._variable.slot, INT32, zero, position, "goto"))
        return self._variable

    def _find_regions(
        self, names: Mapping[str, tuple[int, Cursor]], statements: Sequence[Cursor | None]
    ) -> list[_Region]:
        """Return the regions of a block's labels, outer ones first."""
        regions: dict[tuple[str, bool], _Region] = {}
        for index, statement in enumerate(statements):
            for name in _iterate_jumps(statement) if statement is not None else ():
                if name not in names:
                    continue
                place, label = names[name]
                is_forward = index < place
                first, end = (index, place) if is_forward else (place, index + 1)
                region = regions.get((name, is_forward))
                if region is None:
                    self._count += 1
                    jump: Literal["break", "continue"] = "break" if is_forward else "continue"
                    position = get_reported_position(label)
                    regions[name, is_forward] = _Region(name, jump, first, end, self._count, label, position)
                else:
                    region.first, region.end = min(region.first, first), max(region.end, end)
        _nest([*regions.values()])
        return sorted(regions.values(), key=lambda region: (region.first, -region.end))

    def _lower_range(
        self,
        statements: Sequence[Cursor | None],
        regions: Sequence[_Region],
        first: int,
        end: int,
        lower: Callable[[Cursor], list[ir.Statement]],
    ) -> list[ir.Statement]:
        lowered: list[ir.Statement] = []
        while first < end:
            region = next((each for each in regions if each.first == first), None)
            if region is None:
                statement = statements[first]
                lowered += lower(statement) if statement is not None else []
                first += 1
                continue
            inner = [each for each in regions if each is not region and each.end <= region.end]
            level = _Level(region)
            self._levels.append(level)
            body = self._lower_range(statements, inner, region.first, region.end, lower)
            self._levels.pop()
            leave = ir.Jump("break", region.position)
            loop = ir.Loop(None, None, ir.Block((*body, leave)), True, region.position)
            lowered.append(self._resume_jumps(loop, level))
            regions = [each for each in regions if each.first >= region.end]
            first = region.end
        return lowered


def _nest(regions: Sequence[_Region]) -> None:
    """Extend regions that overlap until one contains the other.

    The beginning of a forward jump's region may be earlier, and the end of a loop later.

    Raises
    ------
    CompileError
        If a forward jump enters a loop.
    """
    is_changed = True
    while is_changed:
        is_changed = False
        for early in regions:
            for late in regions:
                if not early.first < late.first < early.end < late.end:
                    continue
                if late.jump == "break":
                    late.first = early.first
                elif early.jump == "continue":
                    early.end = late.end
                else:
                    raise build_unsupported_error(early.cursor, "a goto into a loop of gotos", advice=_ADVICE)
                is_changed = True


def _iterate_jumps(statement: Cursor) -> Iterator[str]:
    """Yield the names of the labels to which a statement jumps."""
    if statement.kind == CursorKind.GOTO_STMT:
        yield statement.children[0].spelling
    elif statement.kind != CursorKind.LAMBDA_EXPR:
        for child in statement.children:
            yield from _iterate_jumps(child)
