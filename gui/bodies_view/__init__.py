"""The Run tab of a pattern of bodies: a simulation that goes on, drawn by the engine, and what it conserves."""
