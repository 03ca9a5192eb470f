"""A Dask cluster and its workers."""
