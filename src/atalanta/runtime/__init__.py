"""The asyncio shell: the only package with sockets, files, clocks, signals and an event loop."""
