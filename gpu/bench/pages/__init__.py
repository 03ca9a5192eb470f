"""The pages of figures in `docs/`."""
