"""PyCUDA without a GPU: replacements of its compiled modules `pycuda._driver` and `pycuda._pvt_struct`."""
