"""Checks across the sections of one configuration, and across the configurations of several nodes."""
