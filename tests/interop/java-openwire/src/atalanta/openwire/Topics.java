package atalanta.openwire;

import javax.jms.JMSException;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TemporaryTopic;
import org.apache.activemq.ActiveMQConnection;

/** Flows of topics. */
final class Topics {
  private Topics() {}

  private static void publish(Session session, String topic, String... texts) throws JMSException {
    MessageProducer producer = session.createProducer(session.createTopic(topic));
    for (String text : texts) {
      producer.send(session.createTextMessage(text));
    }
    producer.close();
  }

  static void subscribers(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageConsumer one = session.createConsumer(session.createTopic(world.name));
    MessageConsumer two = world.session(Session.CLIENT_ACKNOWLEDGE).createConsumer(session.createTopic(world.name));
    publish(session, world.name, "1", "2");
    for (MessageConsumer each : new MessageConsumer[] {one, two}) {
      World.same("1", World.text(each));
      World.same("2", World.text(each));
      World.nothing(each);
    }
  }

  static void noLocal(World world) throws Exception {
    ActiveMQConnection connection = world.connect();
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(session.createTopic(world.name), null, true);
    publish(session, world.name, "own");
    publish(world.session(Session.AUTO_ACKNOWLEDGE), world.name, "other");
    World.same("other", World.text(consumer));
    World.nothing(consumer);
  }

  static void wildcards(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageConsumer all = session.createConsumer(session.createTopic(world.name + ".>"));
    MessageConsumer one = session.createConsumer(session.createTopic(world.name + ".*.x"));
    publish(session, world.name + ".a.x", "1");
    publish(session, world.name + ".a.b.x", "2");
    World.same("1", World.text(all));
    World.same("2", World.text(all));
    World.same("1", World.text(one));
    World.nothing(one);
  }

  static void durable(World world) throws Exception {
    Session sending = world.session(Session.AUTO_ACKNOWLEDGE);
    String clientId = world.name + ".id";
    for (int round = 0; round < 3; round++) {
      ActiveMQConnection connection = world.connect("", clientId);
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      MessageConsumer consumer = session.createDurableSubscriber(session.createTopic(world.name), "sub");
      if (round > 0) {
        World.same("away" + (round - 1), World.text(consumer));
      }
      publish(sending, world.name, "here" + round);
      World.same("here" + round, World.text(consumer));
      World.nothing(consumer);
      try {
        session.createDurableSubscriber(session.createTopic(world.name), "sub");
        throw new AssertionError("a second consumer of a subscription was accepted");
      } catch (JMSException expected) {
        World.same(true, expected.getMessage() != null);
      }
      connection.close();
      publish(sending, world.name, "away" + round);
    }
    ActiveMQConnection connection = world.connect("", clientId);
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    session.unsubscribe("sub");
    World.nothing(session.createDurableSubscriber(session.createTopic(world.name), "sub"));
  }

  static void temporaryTopic(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    TemporaryTopic topic = session.createTemporaryTopic();
    MessageConsumer consumer = session.createConsumer(topic);
    Session other = world.session(Session.AUTO_ACKNOWLEDGE);
    other.createProducer(topic).send(other.createTextMessage("1"));
    World.same("1", World.text(consumer));
  }

  static void virtualTopic(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    String topic = "VirtualTopic." + world.name;
    MessageConsumer first = session.createConsumer(session.createQueue("Consumer.A." + topic));
    MessageConsumer second = session.createConsumer(session.createQueue("Consumer.B." + topic));
    publish(session, topic, "1");
    World.same("1", World.text(first));
    World.same("1", World.text(second));
    second.close();
    publish(session, topic, "2");
    World.same("2", World.text(first));
    World.same("2", World.text(session.createConsumer(session.createQueue("Consumer.B." + topic))));
  }

  static void manyToTopic(World world) throws Exception {
    Session session = world.connect("jms.optimizeAcknowledge=true", null)
        .createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(
        session.createTopic(world.name + "?consumer.prefetchSize=50"));
    Session sending = world.session(Session.AUTO_ACKNOWLEDGE);
    String[] texts = new String[2000];
    for (int at = 0; at < texts.length; at++) {
      texts[at] = "" + at;
    }
    publish(sending, world.name, texts);
    for (String text : texts) {
      World.same(text, World.text(consumer));
    }
  }
}
