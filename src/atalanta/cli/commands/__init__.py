"""The arguments of each command; the work is in the folders beside this one."""
