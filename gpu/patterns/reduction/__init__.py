"""Reduction: declaration and benchmarks."""
