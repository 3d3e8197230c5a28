"""Simulated pairs: two machines with a shared folder, of which one serves."""
