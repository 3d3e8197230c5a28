"""Management by message: resources, operations and metrics."""
