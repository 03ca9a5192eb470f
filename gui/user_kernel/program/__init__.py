"""The page of a whole program, a PyCUDA script or a CUDA program with `main`: its output, launches and steps."""
