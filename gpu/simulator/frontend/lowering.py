"""What the lowering of each kind of expression asks of that of all: `Expressions` answers, and hands on to each."""

from __future__ import annotations

from typing import Protocol

from gpu.simulator import ir
from gpu.simulator.frontend.clang import Cursor
from gpu.simulator.frontend.scope import Scope
from gpu.simulator.types import Type


class Lowering(Protocol):
    """Lowers the expressions of one function, whatever they are."""

    scope: Scope

    def type_of(self, cursor: Cursor) -> Type:
        """Return the type of an expression."""

    def value(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression to its value. An array's is the pointer to its first element."""

    def converted(self, cursor: Cursor, type: Type) -> ir.Expression:
        """Lower an expression and convert it to `type`."""

    def condition(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression that decides: a bool."""

    def discarded(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression whose value nobody wants, so that an atomic need not give one."""

    def place(self, cursor: Cursor) -> ir.Place | None:
        """Lower an expression that names a place; None for one that is only a value."""

    def address(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression to its address, for a reference to bind to; a value is given memory."""
