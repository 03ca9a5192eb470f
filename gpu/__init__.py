"""Everything of Lockstep that is not a window: patterns, engines, the simulator and the engine's process."""

__version__ = "0.2.0"
