"""Whole CUDA C++ programs: host code compiled for this machine, with the runtime API provided by the simulator."""
