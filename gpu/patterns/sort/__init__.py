"""Sort: declaration, keys, host programs, and benchmarks."""
