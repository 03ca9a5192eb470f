"""Contraction: products that are fused with the sum or difference that uses them, as nvcc does by default.

As in nvcc, a sum of two products fuses the left one. Contraction is decided once, when expressions are lowered, so that
all executors round alike. It stays within an expression; nvcc also fuses across statements and inlined calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from gpu.simulator.ir import nodes
from gpu.simulator.ir.forms import Function
from gpu.simulator.ir.numpy_functions import fused_multiply_add


def contract_product(op: str, expression: nodes.Expression) -> nodes.Expression:
    """Return an operand of an operator; if it is a product that the operator fuses, as an exact one."""
    match expression:
        case nodes.Binary(type, "*", _, _) if op in ("+", "-") and type.is_float:
            return replace(expression, is_exact=True)
    return expression


def contract_operands(
    op: str, left: nodes.Expression, right: nodes.Expression
) -> tuple[nodes.Expression, nodes.Expression]:
    """Return the operands of a binary operator, of which at most one is an exact product."""
    contracted = contract_product(op, left)
    return (contracted, right) if is_exact_product(contracted) else (left, contract_product(op, right))


def is_exact_product(expression: nodes.Expression) -> TypeGuard[nodes.Binary]:
    """Return whether an operand is a product that is not rounded."""
    return isinstance(expression, nodes.Binary) and expression.is_exact


def get_fused_operation(op: str, *, product_first: bool) -> Function:
    """Return the function of two factors and the other operand of "+" or "-" that rounds once."""
    if op == "+":
        return fused_multiply_add
    if product_first:
        return lambda x, y, z: fused_multiply_add(x, y, -z)
    return lambda x, y, z: fused_multiply_add(-x, y, z)
