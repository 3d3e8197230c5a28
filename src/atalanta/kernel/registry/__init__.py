"""Registries of queues, addresses, diverts and duplicate ids."""
