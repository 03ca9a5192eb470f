"""The windows of Lockstep. Nothing here imports pycuda: work goes to the engine's process."""
