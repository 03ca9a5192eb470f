"""Devices that can run kernels: detection, properties and status."""
