"""The code of a block: loops over its threads, their masks and memory, and warps that run independently."""
