"""PTX, NVIDIA's virtual assembly: parsed, and executed for some blocks to count their work."""
