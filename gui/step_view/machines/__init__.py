"""A run on several devices, stepped: its tasks as cells, and its workers in time."""
