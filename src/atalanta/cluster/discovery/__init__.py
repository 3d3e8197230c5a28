"""Broadcast and discovery groups, DNS and meeting places."""
