"""The flights demo: three nodes, one for each New York airport, and Spark. `python -m examples.flights`."""
