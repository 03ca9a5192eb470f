"""The Atomics tab: counted contention, textbook latencies, measured times, lost updates."""
