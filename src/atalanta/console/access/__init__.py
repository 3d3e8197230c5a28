"""Who may do what in the console: sessions, throttling of log-ins, checks of every request."""
