"""Command line: `run`, `simulate`, `bench`, `devices` and others, generated from the declarations."""
