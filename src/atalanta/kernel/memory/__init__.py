"""Memory limits, producer credits and bodies of large messages."""
