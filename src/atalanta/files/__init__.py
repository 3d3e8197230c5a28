"""Files named in configurations, read by nodes and clients: JGroups stack files, XML, size limits."""
