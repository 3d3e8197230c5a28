"""The findings about a surveyed cluster: each one problem, its place and its remedy."""
