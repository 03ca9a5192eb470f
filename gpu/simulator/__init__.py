"""The SIMT simulator: CUDA C++ text -> front end (libclang) -> typed IR -> an executor over lanes in lockstep."""
