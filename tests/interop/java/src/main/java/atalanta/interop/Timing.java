package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import org.apache.activemq.artemis.api.core.SimpleString;

/** When and where else: delivery delay, redelivery delay ("delayed.#"), expiry ("expiring.#"), diverts, wildcards. */
final class Timing {
  private Timing() { }

  private static long now() {
    return System.currentTimeMillis();
  }

  private static void send(Session session, Queue queue, String text, long delay) throws Exception {
    MessageProducer producer = session.createProducer(queue);
    producer.setDeliveryDelay(delay);
    producer.send(session.createTextMessage(text));
    producer.close();
  }

  @Scenario
  static void deliveryDelay(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageConsumer consumer = world.session().createConsumer(queue);
    long sent = now();
    send(session, queue, "later", 900);
    send(session, queue, "sooner", 500);
    send(session, queue, "now", 0);
    World.texts(consumer, "now");
    Message sooner = World.arrives(consumer);
    equal("sooner", World.text(sooner), "text");
    check(now() - sent >= 500, "not before its time, but after " + (now() - sent) + " ms");
    check(Math.abs(sooner.getJMSDeliveryTime() - sent - 500) < 400, "delivery time");
    World.texts(consumer, "later");
    check(now() - sent >= 900, "not before its time, but after " + (now() - sent) + " ms");
    World.nothing(consumer);
  }

  @Scenario
  static void delayedMessagesCount(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    send(session, queue, "later", 60_000);
    SimpleString name = SimpleString.of(queue.getQueueName());
    World.until("it is counted", () -> world.core().queueQuery(name).getMessageCount() == 1);
    World.nothing(world.session().createConsumer(queue));
    check(!session.createBrowser(queue).getEnumeration().hasMoreElements(), "a browser does not show it");
  }

  @Scenario
  static void delayInATransactionAndOnATopic(World world) throws Exception {
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    Topic topic = session.createTopic(world.name("t"));
    MessageConsumer first = world.session().createConsumer(topic);
    MessageConsumer second = world.session().createConsumer(topic);
    MessageProducer producer = session.createProducer(topic);
    producer.setDeliveryDelay(400);
    producer.send(session.createTextMessage("1"));
    producer.send(session.createTextMessage("2"));
    session.commit();
    World.nothing(first);
    World.texts(first, "1", "2");
    World.texts(second, "1", "2");
  }

  @Scenario
  static void redeliveryDelay(World world) throws Exception {
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    Queue queue = session.createQueue(world.name("delayed", "q"));
    World.sendTexts(world.session(), queue, "again");
    MessageConsumer consumer = session.createConsumer(queue);
    World.texts(consumer, "again");
    long first = now();
    session.rollback();
    Message second = World.arrives(consumer);
    equal(2, second.getIntProperty("JMSXDeliveryCount"), "delivery count");
    check(now() - first >= 380, "the second attempt came after " + (now() - first) + " ms");
    long rolledBack = now();
    session.rollback();
    Message third = World.arrives(consumer);
    equal(3, third.getIntProperty("JMSXDeliveryCount"), "delivery count");
    check(now() - rolledBack >= 780, "the third attempt came after " + (now() - rolledBack) + " ms");
    session.rollback();
    String address = queue.getQueueName();
    MessageConsumer dead = world.session().createConsumer(session.createQueue("Dead::DLQ." + address));
    Message letter = World.arrives(dead);
    equal("again", World.text(letter), "dead letter");
    equal(address, letter.getStringProperty("_AMQ_ORIG_ADDRESS"), "original address");
    equal(address, letter.getStringProperty("_AMQ_ORIG_QUEUE"), "original queue");
  }

  @Scenario
  static void expiryIntoAnAutomaticQueue(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("expiring", "q"));
    MessageConsumer nobody = world.session().createConsumer(queue, "wanted = TRUE");
    World.sendTexts(session, queue, "stale");
    String address = queue.getQueueName();
    SimpleString name = SimpleString.of("EXP." + address);
    World.until("the queue is there", () -> world.core().queueQuery(name).isExists());
    equal("_AMQ_ORIG_ADDRESS = '" + address + "'", world.core().queueQuery(name).getFilterString().toString(), "filter");
    equal("Expired", world.core().queueQuery(name).getAddress().toString(), "address");
    Message moved = World.arrives(world.session().createConsumer(session.createQueue("Expired::EXP." + address)));
    equal("stale", World.text(moved), "text");
    equal(address, moved.getStringProperty("_AMQ_ORIG_QUEUE"), "original queue");
    equal(0L, moved.getJMSExpiration(), "it does not expire again");
    World.nothing(nobody);
  }

  @Scenario
  static void expirationsAreBounded(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("bounded", "q"));
    MessageProducer producer = session.createProducer(queue);
    MessageConsumer consumer = world.session().createConsumer(queue);
    long sent = now();
    for (long timeToLive : new long[] {0, 10, 30_000, 600_000}) {
      producer.setTimeToLive(timeToLive);
      producer.send(session.createTextMessage("t" + timeToLive));
    }
    for (long expected : new long[] {60_000, 20_000, 30_000, 60_000}) {
      long left = World.arrives(consumer).getJMSExpiration() - sent;
      check(Math.abs(left - expected) < 5_000, "expires in " + left + " ms, expected " + expected);
    }
  }

  @Scenario
  static void noExpiry(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("immortal", "q"));
    MessageProducer producer = session.createProducer(queue);
    producer.setTimeToLive(50);
    producer.send(session.createTextMessage("kept"));
    Thread.sleep(500);
    Message kept = World.arrives(world.session().createConsumer(queue));
    equal(0L, kept.getJMSExpiration(), "expiration");
  }

  @Scenario
  static void withoutAQueueItIsADeadLetter(World world) throws Exception {
    Session session = world.session();
    Topic topic = session.createTopic(world.name("unheard", "t"));
    MessageConsumer dead = world.session().createConsumer(session.createQueue("DLQ"), "_AMQ_ORIG_ADDRESS = '" + topic.getTopicName() + "'");
    MessageProducer producer = session.createProducer(topic);
    producer.setTimeToLive(60_000);
    producer.send(session.createTextMessage("nobody"));
    Message letter = World.arrives(dead);
    equal("nobody", World.text(letter), "text");
    check(letter.getStringProperty("_AMQ_ORIG_QUEUE") == null, "no original queue");
    check(letter.propertyExists("_AMQ_ORIG_MESSAGE_ID"), "original message id is there");
    equal(0L, letter.getJMSExpiration(), "it does not expire any more");
    World.nothing(dead);
  }

  @Scenario
  static void divertsCopy(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue("diverted");
    MessageConsumer original = world.session().createConsumer(queue);
    MessageConsumer copies = world.session().createConsumer(session.createQueue("diverted.copy"));
    Message sent = session.createTextMessage("both");
    session.createProducer(queue).send(sent);
    World.texts(original, "both");
    Message copy = World.arrives(copies);
    equal("both", World.text(copy), "text");
    equal("diverted", copy.getStringProperty("_AMQ_ORIG_ADDRESS"), "original address");
    equal("copying", copy.getStringProperty("_AMQ_ORIG_QUEUE"), "the divert");
    equal(sent.getJMSMessageID(), copy.getJMSMessageID(), "message id");
    World.nothing(copies);
  }

  @Scenario
  static void exclusiveDivertWithAFilter(World world) throws Exception {
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    Queue queue = session.createQueue("diverted.away");
    MessageConsumer original = world.session().createConsumer(queue);
    MessageConsumer away = world.session().createConsumer(session.createQueue("diverted.large"));
    MessageProducer producer = session.createProducer(queue);
    for (int size : new int[] {1, 20, 2, 30}) {
      Message message = session.createTextMessage("m" + size);
      message.setIntProperty("size", size);
      producer.send(message);
    }
    session.commit();
    World.texts(original, "m1", "m2");
    World.texts(away, "m20", "m30");
    World.nothing(original);
    World.nothing(away);
  }

  @Scenario
  static void wildcardTopics(World world) throws Exception {
    Session session = world.session();
    String prefix = world.name("wild", "t");
    MessageConsumer all = world.session().createConsumer(session.createTopic(prefix + ".#"));
    World.sendTexts(session, session.createTopic(prefix + ".eu"), "eu");
    MessageConsumer one = world.session().createConsumer(session.createTopic(prefix + ".*"));
    MessageConsumer inner = world.session().createConsumer(session.createTopic(prefix + ".*.today"));
    MessageConsumer plain = world.session().createConsumer(session.createTopic(prefix + ".us"));
    World.sendTexts(session, session.createTopic(prefix + ".us"), "us");
    World.sendTexts(session, session.createTopic(prefix + ".eu.today"), "today");
    World.sendTexts(session, session.createTopic(prefix), "none");
    Message first = World.arrives(all);
    equal("eu", World.text(first), "text");
    equal(prefix + ".eu", ((Topic) first.getJMSDestination()).getTopicName(), "destination");
    World.texts(all, "us", "today", "none");
    World.texts(one, "us");
    World.texts(inner, "today");
    World.texts(plain, "us");
    for (MessageConsumer consumer : new MessageConsumer[] {all, one, inner, plain}) {
      World.nothing(consumer);
    }
  }

  @Scenario
  static void durableSubscriberOfAWildcard(World world) throws Exception {
    String prefix = world.name("wild", "t");
    var connection = world.connectAs(world.name("client"));
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    session.createDurableSubscriber(session.createTopic(prefix + ".#"), "sub").close();
    World.sendTexts(world.session(), session.createTopic(prefix + ".eu"), "kept");
    World.texts(session.createDurableSubscriber(session.createTopic(prefix + ".#"), "sub"), "kept");
  }
}
