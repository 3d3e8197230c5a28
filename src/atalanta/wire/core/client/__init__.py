"""The sans-IO CORE client engine."""
