"""The load generator behind `atalanta bench` and its result table."""
