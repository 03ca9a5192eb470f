"""Export of a recording: pictures, animations, handouts, HTML players, and the recording itself."""
