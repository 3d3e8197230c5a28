"""The broker: publish, acknowledge, dispatch, maintenance, recovery."""
