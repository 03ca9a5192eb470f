"""The benchmarks: every variant beside what a user would take instead, in one run, verified first, then timed."""
