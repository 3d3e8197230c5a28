"""The access to the console: sessions, throttling of log-ins, checks of every request."""
