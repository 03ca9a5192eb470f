"""The other pictures of a recording: variables of a warp, the tree of launches, two orders."""
