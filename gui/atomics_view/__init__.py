"""The Atomics tab: contention counted, latencies modelled, times measured, and updates lost."""
