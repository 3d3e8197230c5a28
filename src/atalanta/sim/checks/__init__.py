"""Checks of the guarantees that a simulated cluster must keep."""
