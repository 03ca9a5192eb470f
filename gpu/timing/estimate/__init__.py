"""Estimate of a kernel's machine code without NVIDIA's compiler: LLVM generates PTX from the simulator's IR."""
