"""Interactive plots: a base class with a cursor line, and the plots of the views."""
