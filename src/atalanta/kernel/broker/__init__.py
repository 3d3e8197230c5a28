"""The broker: publish, acknowledge, dispatch, timers, recovery."""
