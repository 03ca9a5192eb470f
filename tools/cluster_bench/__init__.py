"""Benchmark of several devices: each pattern on one worker of a cluster and on all, with its data on the devices."""
