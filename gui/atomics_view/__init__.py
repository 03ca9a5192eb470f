"""The Atomics tab: contention counted, latencies modeled, times measured, and updates lost."""
