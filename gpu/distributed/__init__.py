"""The same patterns over several GPUs and machines, through Dask distributed: nobody else imports it."""
