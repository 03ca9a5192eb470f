"""The front end: CUDA C++ to the IR."""
