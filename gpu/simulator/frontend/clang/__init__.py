"""Parsing by clang: text that it accepts, its syntax tree, and its diagnostics."""
