"""Lowering of expressions to the IR."""
