"""What a compiler would make of a kernel, where none of NVIDIA's is installed: LLVM makes PTX of the simulator's IR."""
