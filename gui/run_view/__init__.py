"""The Run tab: what goes in, what comes out, and what it cost. One view for each kind of result."""
