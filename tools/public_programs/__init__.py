"""Collections of public CUDA programs that run on the simulator."""
