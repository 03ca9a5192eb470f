"""What there is to run kernels on."""
