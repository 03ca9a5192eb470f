"""Benchmark of the timing model: measured times of a GPU, modeled times, and their differences."""
