"""The timeline of warps: the state of each warp of one modeled multiprocessor, cycle by cycle."""
