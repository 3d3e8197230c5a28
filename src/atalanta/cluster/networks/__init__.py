"""Networks of brokers, as ActiveMQ Classic has them."""
