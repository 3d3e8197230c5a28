"""A management request: its parameters, jobs and answer."""
