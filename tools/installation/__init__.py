"""What `tools.setup` installs for this machine."""
