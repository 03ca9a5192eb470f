"""Convolution: declaration, filters, Fourier transforms, and benchmarks."""
