"""PyCUDA without a GPU: what stands in for its compiled modules, `pycuda._driver` and `pycuda._pvt_struct`."""
