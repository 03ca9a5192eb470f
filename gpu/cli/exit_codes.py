"""What the commands tell who called them."""

from __future__ import annotations

OK, FAILED, REFUSED, STOPPED = 0, 1, 2, 130
