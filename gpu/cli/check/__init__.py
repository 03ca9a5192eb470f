"""The command `check`: run kernels, programs and scripts on the simulator, and report findings to a CI service."""
