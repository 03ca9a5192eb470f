"""Installation of dependencies, and of Lockstep as a package or a bundle."""
