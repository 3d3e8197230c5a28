"""The cluster that configuration files would form: its plan and its rehearsal."""
