"""Checks of the promises that a simulated cluster must keep."""
