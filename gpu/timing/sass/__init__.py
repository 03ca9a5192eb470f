"""What the driver's assembler made of a kernel: its machine instructions, read from the file that it wrote."""
