"""Analyses of a kernel: where its threads wait, the values on which they agree, and the variables to store."""
