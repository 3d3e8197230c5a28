"""Resources of management requests, one module per kind."""
