"""WildFly's messaging-activemq subsystem, read as the broker.xml that means the same, and written back."""
