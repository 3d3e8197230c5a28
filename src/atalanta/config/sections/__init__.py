"""Sections of broker.xml, one module each."""
