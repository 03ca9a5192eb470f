"""The engine's process: its host starts, supervises and ends it; it never outlives the window."""
