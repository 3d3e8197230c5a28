"""The sessions of OpenWire clients: their consumers, answers and output."""
