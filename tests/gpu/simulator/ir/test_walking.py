"""Visitors dispatch on classes of nodes, and those of the executor and of recordings handle every expression."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from gpu.simulator import ir
from gpu.simulator.executor.bare_expressions import BareExpressions
from gpu.simulator.executor.expressions import ExpressionCompiler
from gpu.simulator.ir.walking import Visitor, replace_children
from gpu.simulator.trace.terms import _TermConverter
from gpu.simulator.types import INT32

EXPRESSIONS = get_args(ir.Expression)
ONE = ir.Const(INT32, np.int32(1))


class Names(Visitor):
    def visit_binary(self, node: ir.Binary, *arguments: Any) -> Any:
        return "binary", *arguments

    visit_async_copy = visit_binary


def test_a_visitor_calls_the_method_of_a_class_with_further_arguments() -> None:
    assert Names().visit(ir.Binary(INT32, "+", ONE, ONE), 1, 2) == ("binary", 1, 2)
    with pytest.raises(AssertionError):
        Names().visit(ONE)


def test_each_expression_is_executed_and_recorded() -> None:
    assert set(EXPRESSIONS) <= ExpressionCompiler._methods.keys() | BareExpressions._methods.keys()
    assert set(EXPRESSIONS) <= _TermConverter._methods.keys()


def test_children_are_replaced_in_tuples_too() -> None:
    two = ir.Const(INT32, np.int32(2))
    for node in (ir.Binary(INT32, "+", ONE, ONE), ir.Intrinsic(INT32, "min", (ONE, ONE))):
        replaced = replace_children(node, lambda part: two)
        assert str(replaced).count("int32(2)") == 2
        assert "int32(1)" not in str(replaced)
