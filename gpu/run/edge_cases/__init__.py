"""Edge cases of edited kernels: small inputs that tell mistakes apart."""
