"""The commands that look at or change a running cluster: topology, doctor, drain, rebalance."""
