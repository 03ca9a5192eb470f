"""The compiled executor: the IR becomes machine code through LLVM; blocks run in parallel, threads in vectorized loops.

How a kernel becomes LLVM text, from analysis to output:

- `planner` divides it into a `plan`, with the results of `synchronization`, `uniformity`, `rematerialization` and
  `scalar_replacement`.
- `thread_block` loops over threads, `scratch` and `memory` place their variables, `masks` track the active threads, and
  `corners` test whether all of them are active.
- `strips` finds threads that access neighboring elements although masks split their numbers.
- `accesses`, `expressions` and `statements` write the code of one thread, `lanes` and `exchanges` the exchanges between
  threads, `warp_vectors` the arithmetic of a whole warp.
- `control_flow` writes the plan's items, and `kernel` the function around them; `outlining` splits long functions.
- `children` are the records of launches of other kernels.

`native_code` compiles the text to machine code, and `launch` runs it.
"""
