"""Shared painting code of the views: themes, colors, text, cached pictures and formatted values."""
