"""The simulator's IR: its nodes, which this module exports, and what each operation and intrinsic means."""

from gpu.simulator.ir.nodes import *  # noqa: F403
