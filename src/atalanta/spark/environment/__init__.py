"""Java, Python and the package as Spark's processes need them."""
