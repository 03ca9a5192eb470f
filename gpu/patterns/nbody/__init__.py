"""N-body: the declaration, forces, physics, pictures, files, and simulations that go on."""
