"""Resources that management requests name, one module each."""
