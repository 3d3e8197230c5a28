package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import org.apache.activemq.artemis.api.core.SimpleString;

/** Dead letters (address-setting "redeliver.#": three attempts, DLQ) and expiry (ExpiryQueue). */
final class Redelivery {
  private Redelivery() { }

  private static String from(Queue queue) throws Exception {
    return "_AMQ_ORIG_ADDRESS = '" + queue.getQueueName() + "'";
  }

  @Scenario
  static void afterThreeAttemptsItIsADeadLetter(World world) throws Exception {
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    Queue queue = session.createQueue(world.name("redeliver", "q"));
    Session sender = world.session();
    Message poison = sender.createTextMessage("poison");
    poison.setStringProperty("kept", "yes");
    sender.createProducer(queue).send(poison);
    World.sendTexts(sender, queue, "good");
    MessageConsumer consumer = session.createConsumer(queue);
    for (int attempt = 1; attempt <= 3; attempt++) {
      Message message = World.arrives(consumer);
      equal("poison", World.text(message), "text at attempt " + attempt);
      equal(attempt, message.getIntProperty("JMSXDeliveryCount"), "delivery count");
      session.rollback();
    }
    World.texts(consumer, "good");
    session.commit();
    MessageConsumer dead = world.session().createConsumer(session.createQueue("DLQ"), from(queue));
    Message letter = World.arrives(dead);
    equal("poison", World.text(letter), "dead letter");
    equal(poison.getJMSMessageID(), letter.getJMSMessageID(), "message id");
    equal("yes", letter.getStringProperty("kept"), "property");
    equal(queue.getQueueName(), letter.getStringProperty("_AMQ_ORIG_ADDRESS"), "original address");
    equal(queue.getQueueName(), letter.getStringProperty("_AMQ_ORIG_QUEUE"), "original queue");
    check(letter.propertyExists("_AMQ_ORIG_MESSAGE_ID"), "original message id is there");
    check(!letter.getJMSRedelivered(), "a dead letter starts anew");
    World.nothing(dead);
  }

  @Scenario
  static void deadLetterAfterClosedSessions(World world) throws Exception {
    Session sender = world.session();
    Queue queue = sender.createQueue(world.name("redeliver", "q"));
    World.sendTexts(sender, queue, "poison");
    for (int attempt = 1; attempt <= 3; attempt++) {
      var connection = world.connect();
      Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
      Message message = World.arrives(session.createConsumer(queue));
      equal(attempt, message.getIntProperty("JMSXDeliveryCount"), "delivery count");
      session.recover();
      connection.close();
    }
    MessageConsumer dead = world.session().createConsumer(sender.createQueue("DLQ"), from(queue));
    World.texts(dead, "poison");
    World.nothing(world.session().createConsumer(queue));
  }

  @Scenario
  static void expiredIsNotDeliveredButMoved(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageProducer producer = session.createProducer(queue);
    producer.setTimeToLive(200);
    Message sent = session.createTextMessage("stale");
    producer.send(sent);
    producer.setTimeToLive(0);
    producer.send(session.createTextMessage("fresh"));
    MessageConsumer expired = world.session().createConsumer(session.createQueue("ExpiryQueue"), from(queue));
    Message moved = World.arrives(expired);
    equal("stale", World.text(moved), "expired message");
    equal(queue.getQueueName(), moved.getStringProperty("_AMQ_ORIG_QUEUE"), "original queue");
    check(moved.getLongProperty("_AMQ_ACTUAL_EXPIRY") >= sent.getJMSExpiration(), "actual expiry");
    equal(0L, moved.getJMSExpiration(), "it does not expire again");
    MessageConsumer consumer = world.session().createConsumer(queue);
    World.texts(consumer, "fresh");
    World.nothing(consumer);
    World.nothing(expired);
  }

  @Scenario
  static void expiredWhileAConsumerWaits(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageProducer producer = session.createProducer(queue);
    MessageConsumer consumer = world.session().createConsumer(queue, "wanted = TRUE");
    producer.setTimeToLive(100);
    producer.send(session.createTextMessage("unwanted"));
    MessageConsumer expired = world.session().createConsumer(session.createQueue("ExpiryQueue"), from(queue));
    World.texts(expired, "unwanted");
    World.nothing(consumer);
    World.until("the queue is empty", () -> world.core().queueQuery(SimpleString.of(queue.getQueueName())).getMessageCount() == 0);
  }
}
