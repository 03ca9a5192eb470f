"""Programs that use the window's code: the tour, README's pictures, a recording's page, response-time benchmark."""
