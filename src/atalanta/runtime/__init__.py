"""The asyncio shell: the only place with sockets, files, clocks, signals and an event loop."""
