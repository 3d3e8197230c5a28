"""JMS selectors."""
