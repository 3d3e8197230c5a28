"""The Spark source."""
