"""PTX, NVIDIA's assembly for any GPU: read, and run for some blocks so that what they do can be counted."""
