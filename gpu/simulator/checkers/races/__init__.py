"""Races: the order between accesses, the accesses that memory remembers, and the checker that compares them."""
