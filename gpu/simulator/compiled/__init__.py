"""The second executor: the IR becomes machine code through LLVM, blocks in parallel, threads as the vectorised loop."""
