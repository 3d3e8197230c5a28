"""The rehearsal of configuration files in the simulator."""
