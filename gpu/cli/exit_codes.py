"""What the commands tell who called them."""

from __future__ import annotations

OK, FAILED, REFUSED, TOO_LONG, STOPPED = 0, 1, 2, 124, 130
