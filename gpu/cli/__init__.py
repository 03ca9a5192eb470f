"""The commands: `run`, `simulate`, `bench`, `devices` and the rest, made from the declarations."""
