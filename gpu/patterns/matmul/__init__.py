"""Matrix product: declaration, element types, host programs, and benchmarks."""
