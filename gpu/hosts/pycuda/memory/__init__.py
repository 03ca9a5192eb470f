"""Memory of the simulated driver: device, host, arrays and pools."""
