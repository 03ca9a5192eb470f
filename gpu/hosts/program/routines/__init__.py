"""Routines of the runtime and driver API by subject: `do_malloc` executes the routine "malloc"."""
