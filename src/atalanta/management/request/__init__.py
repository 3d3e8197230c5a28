"""One management request: its parameters, jobs and answer."""
