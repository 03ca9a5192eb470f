"""The commands that run the user's own code: `simulate`, `program` and `pycuda`."""
