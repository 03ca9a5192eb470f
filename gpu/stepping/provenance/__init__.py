"""All that a host program wrote, over all of its launches, and what made each value."""
