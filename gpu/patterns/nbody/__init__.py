"""N-body: declaration, forces, physics, pictures, files, and continuous simulation."""
