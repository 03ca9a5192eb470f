"""The second executor: the IR becomes machine code through LLVM, blocks in parallel, threads as the vectorized loop.

How a kernel becomes LLVM's text, from what is known of it to what is written:

- `planner` cuts it into a `plan`, with what `waiting`, `uniformity`, `rematerialize` and `local_memory` find in its IR.
- `thread_block` loops over threads, `scratch` and `memory` say where their variables are, `masks` who takes part, and
  `corners` that all do.
- `strips` finds threads whose places lie side by side though masks take their numbers apart.
- `places`, `expressions` and `statements` write what one thread runs, `lanes` and `exchanges` what threads exchange,
  `warp_vectors` what a vote's lanes compute at once.
- `control_flow` writes the plan's items, and `kernel` the function around them; `outlining` cuts it where it is long.
- `children` are the records that launches of other kernels leave.

`native` makes machine code of the text, and `launch` runs it.
"""
