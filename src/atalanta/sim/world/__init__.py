"""Virtual time, network and disks."""
