"""What all lowering functions share: types, classes, scopes, conversions, and calls of CUDA's functions."""
