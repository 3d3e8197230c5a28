"""Tables, progress bars, pictures and the exit status of commands."""
