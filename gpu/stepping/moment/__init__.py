"""What happens at a moment: what lanes do, what memory is asked for, and what variables hold."""
