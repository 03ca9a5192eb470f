"""Whole CUDA C++ programs: host code compiled for this machine, the runtime API answered by the simulator."""
