"""Simulated clients."""
