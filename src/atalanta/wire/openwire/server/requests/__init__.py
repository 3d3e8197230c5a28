"""The commands of OpenWire clients that have logged in."""
