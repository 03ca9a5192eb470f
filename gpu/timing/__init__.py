"""How long a launch would take on a GPU: what its blocks do, sampled, and a multiprocessor that is made to do it."""
