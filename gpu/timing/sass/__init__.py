"""A kernel's machine instructions (SASS), read from the cubin that the driver's assembler writes."""
