"""Programs that drive the real window: the tour, README's pictures, the response-time benchmark."""
