"""`python -m lockstep`: the command `lockstep`."""

from __future__ import annotations

import sys

from lockstep import main

if __name__ == "__main__":
    sys.exit(main())
