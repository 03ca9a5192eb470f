"""The matrix product: the declaration, elements, and the product of halves."""
