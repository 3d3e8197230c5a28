"""The log view: a queue read by sequence."""
