"""JGroups stack files: which place its discovery protocol meets at. For nodes (config) and clients."""
