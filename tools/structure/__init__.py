"""The figures of the source tree's structure, and the check that they do not get worse."""
