"""Reading of a data folder without its node."""
