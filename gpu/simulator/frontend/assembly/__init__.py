"""Lowering of `asm` statements with PTX."""
