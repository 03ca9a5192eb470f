"""The Run tab: input, result and cost, with one view per kind of result."""
