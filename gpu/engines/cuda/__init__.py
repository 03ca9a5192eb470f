"""The CUDA engine and what it uses of the driver."""
