"""The AMQP 1.0 message format, as far as a peer forwards such messages: decoder, sections, conversion to CORE."""
