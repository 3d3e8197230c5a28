"""The process: event loop, logs, signals and exit statuses."""
