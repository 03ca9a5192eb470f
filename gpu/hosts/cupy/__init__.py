"""Replacement of CuPy: arrays are NumPy arrays with device addresses, and kernels run on the simulator."""
