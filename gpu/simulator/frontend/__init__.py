"""CUDA C++ text to the IR."""
