"""The message, its properties and selectors."""
