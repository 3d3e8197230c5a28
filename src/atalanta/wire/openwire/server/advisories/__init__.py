"""Advisories: what an OpenWire broker tells the consumers of `ActiveMQ.Advisory.…` topics."""
