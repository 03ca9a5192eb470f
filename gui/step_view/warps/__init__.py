"""The timeline of warps: what each warp of one modeled multiprocessor does, cycle by cycle."""
