"""Further pictures of a recording: a warp's variables, tensor-core tiles, the launch tree, two schedules."""
