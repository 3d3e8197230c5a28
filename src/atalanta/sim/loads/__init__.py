"""Loads of simulated clusters, one subject each."""
