"""A recording as files: pictures, animations, itself."""
