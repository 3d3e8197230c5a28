"""Declared pipelines: sources, SQL steps and queries of one file; see docs/guide/pipelines.md."""
