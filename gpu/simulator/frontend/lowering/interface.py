"""The interface through which the lowering functions of each kind of expression lower subexpressions."""

from __future__ import annotations

from typing import Protocol

from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor
from gpu.simulator.frontend.lowering.scope import Scope
from gpu.simulator.types import Type


class Lowering(Protocol):
    """Lowers any expression of one function; implemented by `Expressions`."""

    scope: Scope

    def type_of(self, cursor: Cursor) -> Type:
        """Return the type of an expression."""

    def value(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression to its value; for an array, the pointer to its first element."""

    def convert(self, cursor: Cursor, type: Type) -> ir.Expression:
        """Lower an expression and convert it to `type`."""

    def condition(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression and convert it to bool."""

    def lower_discarded(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression for its effects; its value is not used, so an atomic operation need not return one."""

    def place(self, cursor: Cursor) -> ir.Place | None:
        """Lower an expression that names a place; None for one that is only a value."""

    def address(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression to an address that a reference can bind to; a value is stored in memory first."""
