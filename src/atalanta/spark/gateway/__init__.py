"""The gateway between Spark and brokers."""
