"""The commands that run a pattern: `run`, `atomics`, and their options for several devices."""
