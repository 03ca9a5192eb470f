"""`cupyx.jit`: Python functions that are translated to CUDA C++."""
