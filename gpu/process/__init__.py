"""The engine's process: started, fed, watched and ended by its host; it outlives no window."""
