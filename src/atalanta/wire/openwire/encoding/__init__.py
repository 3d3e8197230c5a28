"""OpenWire's encodings, loose and tight, under the fields of any structure."""
