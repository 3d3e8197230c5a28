"""Loads of simulated clusters, one subject per module."""
