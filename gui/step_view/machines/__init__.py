"""Step view of a run on several devices: its Dask tasks as cells, and a timeline of its workers."""
