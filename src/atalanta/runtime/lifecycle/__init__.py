"""Start, reload, graceful stop and the critical analyzer."""
