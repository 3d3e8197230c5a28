"""Page files of queues larger than memory."""
