"""Everything in Lockstep except the window: patterns, engines, the simulator and the engine's process."""

__version__ = "0.2.0"
