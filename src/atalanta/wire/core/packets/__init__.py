"""CORE packets and their codec."""
