"""WildFly's messaging-activemq subsystem, converted to the tree of an equal broker.xml."""
