"""The Atomics tab: counted contention, modeled latencies, measured times, lost updates."""
