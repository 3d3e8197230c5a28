"""Java, Python and the package for Spark's processes."""
