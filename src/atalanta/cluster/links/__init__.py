"""QueueSender connections to other brokers, and the local queue that drains over one."""
