"""The survey of a running cluster: what its nodes say by management, as plain data, and the findings about it."""
