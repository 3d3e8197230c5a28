"""OpenWire, the protocol of ActiveMQ Classic: its wire format, without input and output."""
