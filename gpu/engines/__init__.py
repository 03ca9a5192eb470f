"""The engines that run kernels: a GPU through PyCUDA, or the simulator. One protocol, so one host program drives both."""
