"""The order in which warps and lanes run."""
