"""The broker's side of OpenWire connections."""
