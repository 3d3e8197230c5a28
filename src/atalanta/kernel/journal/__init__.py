"""Kinds and layouts of the kernel's journal records."""
