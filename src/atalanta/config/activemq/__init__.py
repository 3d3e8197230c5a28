"""ActiveMQ Classic's activemq.xml, converted to the tree of an equal broker.xml."""
