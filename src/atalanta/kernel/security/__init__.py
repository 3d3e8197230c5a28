"""Authentication, permissions and resource limits."""
