"""Kernels of CuPy scripts: raw ones, and those generated from expressions."""
