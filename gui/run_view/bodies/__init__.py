"""The Run tab of a pattern of bodies: a live simulation rendered by the engine, with plots of conserved quantities."""
