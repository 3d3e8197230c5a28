"""The simulation of configuration files."""
