"""The broker path of messages, and the filter of network bridges."""
