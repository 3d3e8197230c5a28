"""Spark reads a queue of a running Artemis, where nothing is installed. `python -m examples.foreign`."""
