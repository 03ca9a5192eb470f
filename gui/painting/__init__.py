"""What views paint with: themes, colors, letters, values."""
