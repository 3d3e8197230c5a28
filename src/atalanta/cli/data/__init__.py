"""A data folder read without its node."""
