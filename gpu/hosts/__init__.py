"""Host code without a GPU: PyCUDA scripts and whole CUDA programs, on one simulated driver."""
