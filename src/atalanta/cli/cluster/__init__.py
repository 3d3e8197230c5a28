"""The commands that inspect or change a running cluster: topology, doctor, drain, rebalance."""
