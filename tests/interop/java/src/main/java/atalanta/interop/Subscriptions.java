package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.Connection;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** Durable, shared and shared durable subscriptions. */
final class Subscriptions {
  private Subscriptions() { }

  private static Session session(Connection connection) throws JMSException {
    return connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
  }

  @Scenario
  static void durableKeepsMessagesWhileAway(World world) throws Exception {
    Topic topic = world.session().createTopic(world.name("t"));
    Connection connection = world.connectAs(world.name("client"));
    MessageConsumer consumer = session(connection).createDurableSubscriber(topic, "sub");
    World.sendTexts(world.session(), topic, "1");
    World.texts(consumer, "1");
    connection.close();
    World.sendTexts(world.session(), topic, "2", "3");
    Connection again = world.connectAs(world.name("client"));
    World.texts(session(again).createDurableSubscriber(topic, "sub"), "2", "3");
  }

  @Scenario
  static void unsubscribeForgets(World world) throws Exception {
    Topic topic = world.session().createTopic(world.name("t"));
    Connection connection = world.connectAs(world.name("client"));
    Session session = session(connection);
    MessageConsumer consumer = session.createDurableSubscriber(topic, "sub");
    World.refused(JMSException.class, () -> session.unsubscribe("sub"));
    World.sendTexts(world.session(), topic, "1");
    World.texts(consumer, "1");
    consumer.close();
    World.sendTexts(world.session(), topic, "2");
    session.unsubscribe("sub");
    World.refused(InvalidDestinationException.class, () -> session.unsubscribe("sub"));
    MessageConsumer fresh = session.createDurableSubscriber(topic, "sub");
    World.sendTexts(world.session(), topic, "3");
    World.texts(fresh, "3");
    World.nothing(fresh);
  }

  @Scenario
  static void clientIdIsUsedOnce(World world) throws Exception {
    Connection connection = world.connectAs(world.name("client"));
    World.refused(InvalidClientIDException.class, () -> world.connectAs(world.name("client")));
    connection.close();
    world.connectAs(world.name("client"));
  }

  @Scenario
  static void secondActiveSubscriberIsRefused(World world) throws Exception {
    Topic topic = world.session().createTopic(world.name("t"));
    Connection connection = world.connectAs(world.name("client"));
    session(connection).createDurableSubscriber(topic, "sub");
    World.refused(JMSException.class, () -> session(connection).createDurableSubscriber(topic, "sub"));
  }

  @Scenario
  static void changedSelectorStartsAnew(World world) throws Exception {
    Topic topic = world.session().createTopic(world.name("t"));
    Session session = session(world.connectAs(world.name("client")));
    session.createDurableSubscriber(topic, "sub", "n < 5", false).close();
    sendNumbers(world, topic, 10);
    MessageConsumer consumer = session.createDurableSubscriber(topic, "sub", "n < 3", false);
    World.nothing(consumer);
    sendNumbers(world, topic, 10);
    World.texts(consumer, "m0", "m1", "m2");
    World.nothing(consumer);
  }

  @Scenario
  static void sharedDividesMessages(World world) throws Exception {
    Topic topic = world.session().createTopic(world.name("t"));
    MessageConsumer first = world.session().createSharedConsumer(topic, "team");
    MessageConsumer second = world.session().createSharedConsumer(topic, "team");
    MessageConsumer other = world.session().createSharedConsumer(topic, "others");
    World.sendTexts(world.session(), topic, World.numbered("m", 0, 40));
    List<String> one = World.drained(first);
    List<String> two = World.drained(second);
    check(!one.isEmpty() && !two.isEmpty(), "shares " + one.size() + " and " + two.size());
    Set<String> all = new TreeSet<>(one);
    all.addAll(two);
    equal(40, one.size() + two.size(), "messages to the team");
    equal(40, all.size(), "different messages to the team");
    World.texts(other, World.numbered("m", 0, 40));
  }

  @Scenario
  static void sharedEndsWithItsLastConsumer(World world) throws Exception {
    Topic topic = world.session().createTopic(world.name("t"));
    MessageConsumer first = world.session().createSharedConsumer(topic, "team");
    MessageConsumer second = world.session().createSharedConsumer(topic, "team");
    first.close();
    World.sendTexts(world.session(), topic, "1");
    World.texts(second, "1");
    second.close();
    World.sendTexts(world.session(), topic, "2");
    MessageConsumer again = world.session().createSharedConsumer(topic, "team");
    World.sendTexts(world.session(), topic, "3");
    World.texts(again, "3");
  }

  @Scenario
  static void sharedDurableKeepsMessagesWhileAway(World world) throws Exception {
    Topic topic = world.session().createTopic(world.name("t"));
    String name = "team." + world.name("s");
    Connection one = world.connect();
    Connection two = world.connect();
    MessageConsumer first = session(one).createSharedDurableConsumer(topic, name);
    MessageConsumer second = session(two).createSharedDurableConsumer(topic, name);
    World.sendTexts(world.session(), topic, World.numbered("m", 0, 20));
    equal(20, World.drained(first).size() + World.drained(second).size(), "messages");
    one.close();
    two.close();
    World.sendTexts(world.session(), topic, "kept 1", "kept 2");
    Session session = world.session();
    MessageConsumer again = session.createSharedDurableConsumer(topic, name);
    World.texts(again, "kept 1", "kept 2");
    again.close();
    session.unsubscribe(name);
  }

  @Scenario
  static void sharedDurableOfAClientId(World world) throws Exception {
    Topic topic = world.session().createTopic(world.name("t"));
    Connection connection = world.connectAs(world.name("client"));
    MessageConsumer first = session(connection).createSharedDurableConsumer(topic, "team", "n < 4");
    MessageConsumer second = session(connection).createSharedDurableConsumer(topic, "team", "n < 4");
    sendNumbers(world, topic, 10);
    equal(4, World.drained(first).size() + World.drained(second).size(), "selected messages");
  }

  private static void sendNumbers(World world, Topic topic, int count) throws JMSException {
    Session session = world.session();
    MessageProducer producer = session.createProducer(topic);
    for (int i = 0; i < count; i++) {
      Message message = session.createTextMessage("m" + i);
      message.setIntProperty("n", i);
      producer.send(message);
    }
  }
}
