"""Small helpers for Qt: timers, queued connections, background tasks and event types."""
