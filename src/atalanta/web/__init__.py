"""What a node shows over HTTP: metrics and health (the console is going to live here)."""
