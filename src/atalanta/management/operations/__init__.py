"""Operations on queues, messages, connections and transactions."""
