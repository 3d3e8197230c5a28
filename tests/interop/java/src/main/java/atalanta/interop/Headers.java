package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.DeliveryMode;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;

/** The JMS headers, as the receiver sees them. */
final class Headers {
  private Headers() { }

  @Scenario
  static void correlationTypeAndReplyTo(World world) throws Exception {
    Session session = world.session();
    Message message = session.createTextMessage("h");
    message.setJMSCorrelationID("corr-ü");
    message.setJMSType("invoice");
    message.setJMSReplyTo(session.createQueue("answers.here"));
    Message got = world.round(session, message);
    equal("corr-ü", got.getJMSCorrelationID(), "correlation id");
    equal("invoice", got.getJMSType(), "type");
    check(got.getJMSReplyTo() instanceof Queue, "reply-to is a queue: " + got.getJMSReplyTo());
    equal("answers.here", ((Queue) got.getJMSReplyTo()).getQueueName(), "reply-to");
    equal(world.name("round"), ((Queue) got.getJMSDestination()).getQueueName(), "destination");
  }

  @Scenario
  static void replyToTopic(World world) throws Exception {
    Session session = world.session();
    Message message = session.createTextMessage("h");
    message.setJMSReplyTo(session.createTopic("answers.all"));
    Message got = world.round(session, message);
    check(got.getJMSReplyTo() instanceof Topic, "reply-to is a topic: " + got.getJMSReplyTo());
    equal("answers.all", ((Topic) got.getJMSReplyTo()).getTopicName(), "reply-to");
  }

  @Scenario
  static void correlationIdOfBytes(World world) throws Exception {
    Session session = world.session();
    Message message = session.createTextMessage("h");
    message.setJMSCorrelationIDAsBytes(new byte[] {0, 1, -1});
    equal(new byte[] {0, 1, -1}, world.round(session, message).getJMSCorrelationIDAsBytes(), "correlation id");
  }

  @Scenario
  static void messageIdAndTimestamp(World world) throws Exception {
    Session session = world.session();
    long before = System.currentTimeMillis();
    Message message = session.createTextMessage("h");
    Message got = world.round(session, message);
    long after = System.currentTimeMillis();
    check(got.getJMSMessageID().startsWith("ID:"), "message id " + got.getJMSMessageID());
    equal(message.getJMSMessageID(), got.getJMSMessageID(), "message id");
    equal(message.getJMSTimestamp(), got.getJMSTimestamp(), "timestamp");
    check(got.getJMSTimestamp() >= before && got.getJMSTimestamp() <= after, "timestamp " + got.getJMSTimestamp());
    check(!got.getJMSRedelivered(), "a first delivery is not a redelivery");
    equal(1, got.getIntProperty("JMSXDeliveryCount"), "delivery count");
  }

  @Scenario
  static void deliveryModePriorityAndExpiration(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageProducer producer = session.createProducer(queue);
    Message first = session.createTextMessage("first");
    producer.send(first, DeliveryMode.NON_PERSISTENT, 9, 60_000);
    producer.send(session.createTextMessage("second"), DeliveryMode.PERSISTENT, 4, 0);
    MessageConsumer consumer = world.session().createConsumer(queue);
    Message got = World.arrives(consumer);
    equal("first", World.text(got), "text");
    equal(DeliveryMode.NON_PERSISTENT, got.getJMSDeliveryMode(), "delivery mode");
    equal(9, got.getJMSPriority(), "priority");
    equal(first.getJMSExpiration(), got.getJMSExpiration(), "expiration");
    equal(got.getJMSTimestamp() + 60_000, got.getJMSExpiration(), "expiration after timestamp");
    got = World.arrives(consumer);
    equal(DeliveryMode.PERSISTENT, got.getJMSDeliveryMode(), "delivery mode");
    equal(4, got.getJMSPriority(), "priority");
    equal(0L, got.getJMSExpiration(), "expiration");
  }

  @Scenario
  static void highPriorityFirst(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageProducer producer = session.createProducer(queue);
    for (int priority : new int[] {0, 4, 9, 4, 7, 9}) {
      producer.send(session.createTextMessage("p" + priority), DeliveryMode.PERSISTENT, priority, 0);
    }
    World.texts(world.session().createConsumer(queue), "p9", "p9", "p7", "p4", "p4", "p0");
  }

  @Scenario
  static void groupId(World world) throws Exception {
    Session session = world.session();
    Message message = session.createTextMessage("h");
    message.setStringProperty("JMSXGroupID", "group-1");
    message.setIntProperty("JMSXGroupSeq", 3);
    Message got = world.round(session, message);
    equal("group-1", got.getStringProperty("JMSXGroupID"), "group id");
    equal(3, got.getIntProperty("JMSXGroupSeq"), "group sequence");
  }

  @Scenario
  static void sendingAReceivedMessageOn(World world) throws Exception {
    Session session = world.session();
    Message message = session.createTextMessage("onward");
    message.setStringProperty("kept", "yes");
    Message got = world.round(session, message);
    Queue next = session.createQueue(world.name("next"));
    Session forwarder = world.session();
    forwarder.createProducer(next).send(got);
    Message again = World.arrives(session.createConsumer(next));
    equal("onward", World.text(again), "text");
    equal("yes", again.getStringProperty("kept"), "property");
    equal(world.name("next"), ((Queue) again.getJMSDestination()).getQueueName(), "destination");
  }
}
