"""The asyncio shell and the blocking shell around the CORE engine."""
