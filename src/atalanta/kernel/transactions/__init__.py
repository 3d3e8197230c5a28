"""Local and XA transactions."""
