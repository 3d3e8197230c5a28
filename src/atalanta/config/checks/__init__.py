"""Checks across the sections of a configuration, and across several nodes."""
