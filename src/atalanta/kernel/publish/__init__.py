"""The steps of a publish: duplicate check, routing, reroute, redelivery."""
