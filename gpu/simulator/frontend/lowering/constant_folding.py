"""Constant folding: compute expressions of constants, which macros and templates leave behind, once at compile time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.simulator import ir
from gpu.simulator.ir.operations import UNARY, get_binary_operation, get_cast
from gpu.simulator.types import Scalar


def fold_constants(expression: ir.Expression) -> ir.Expression:
    """Return a constant if the operands are constants, else the expression itself."""
    match expression:
        case ir.Binary(type, operator, ir.Const(operand_type, left), ir.Const(_, right)):
            if operator in ("/", "%") and right == 0 and not operand_type.is_float:
                return expression
            return _constant(type, get_binary_operation(operator, operand_type), left, right)
        case ir.Unary(type, operator, ir.Const(operand_type, operand)):
            return _constant(type, UNARY[operator].get_function(operand_type), operand)
        case ir.Cast(Scalar() as type, ir.Const(source, operand)):
            return _constant(type, get_cast(source, type), operand)
        case ir.Select(_, ir.Const(_, condition), chosen, other):
            return chosen if condition else other
        case ir.Logical(type, operator, ir.Const(_, left), right):
            if bool(left) == (operator == "&&"):
                return right
            return ir.Const(type, np.bool_(left))
    return expression


def _constant(type: Scalar, operation: Callable[..., Any], *operands: Any) -> ir.Const:
    with np.errstate(all="ignore"):
        return ir.Const(type, operation(*operands))
