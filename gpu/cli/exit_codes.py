"""Exit codes of the commands."""

from __future__ import annotations

OK, FAILED, REFUSED, TOO_LONG, STOPPED = 0, 1, 2, 124, 130
