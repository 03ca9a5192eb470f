"""Histogram: declaration, inputs, demonstrations, and benchmarks."""
