"""Broadcast and discovery groups, DNS and JGroups channels."""
