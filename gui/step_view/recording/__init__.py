"""Recording requests, settings, and the models read from recordings."""
