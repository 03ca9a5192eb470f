"""Runs of the patterns on several GPUs and machines through Dask; imported only when they are used."""
