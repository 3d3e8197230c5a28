package atalanta.interop;

import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.Topic;

/** Non-durable subscriptions. */
final class Topics {
  private Topics() { }

  @Scenario
  static void everySubscriberGetsEveryMessage(World world) throws Exception {
    Session session = world.session();
    Topic topic = session.createTopic(world.name("t"));
    MessageConsumer first = world.session().createConsumer(topic);
    MessageConsumer second = world.session().createConsumer(topic);
    MessageConsumer third = world.session().createConsumer(topic);
    World.sendTexts(session, topic, World.numbered("m", 0, 20));
    for (MessageConsumer consumer : new MessageConsumer[] {first, second, third}) {
      World.texts(consumer, World.numbered("m", 0, 20));
      World.nothing(consumer);
    }
  }

  @Scenario
  static void lateSubscriberMissesEarlierMessages(World world) throws Exception {
    Session session = world.session();
    Topic topic = session.createTopic(world.name("t"));
    World.sendTexts(session, topic, "nobody hears this");
    MessageConsumer consumer = world.session().createConsumer(topic);
    World.sendTexts(session, topic, "heard");
    World.texts(consumer, "heard");
    World.nothing(consumer);
  }

  @Scenario
  static void closedSubscriberIsGone(World world) throws Exception {
    Session session = world.session();
    Topic topic = session.createTopic(world.name("t"));
    MessageConsumer consumer = world.session().createConsumer(topic);
    World.sendTexts(session, topic, "1");
    World.texts(consumer, "1");
    consumer.close();
    World.sendTexts(session, topic, "2");
    MessageConsumer again = world.session().createConsumer(topic);
    World.sendTexts(session, topic, "3");
    World.texts(again, "3");
  }

  @Scenario
  static void selectorOnATopic(World world) throws Exception {
    Session session = world.session();
    Topic topic = session.createTopic(world.name("t"));
    MessageConsumer odd = world.session().createConsumer(topic, "odd = TRUE");
    MessageConsumer all = world.session().createConsumer(topic);
    MessageProducer producer = session.createProducer(topic);
    for (int i = 0; i < 6; i++) {
      Message message = session.createTextMessage("m" + i);
      message.setBooleanProperty("odd", i % 2 == 1);
      producer.send(message);
    }
    World.texts(odd, "m1", "m3", "m5");
    World.nothing(odd);
    World.texts(all, World.numbered("m", 0, 6));
  }

  @Scenario
  static void noLocal(World world) throws Exception {
    Connection own = world.connect();
    Session session = own.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Topic topic = session.createTopic(world.name("t"));
    MessageConsumer consumer = session.createConsumer(topic, null, true);
    World.sendTexts(own.createSession(false, Session.AUTO_ACKNOWLEDGE), topic, "own");
    World.sendTexts(world.session(), topic, "other's");
    World.texts(consumer, "other's");
    World.nothing(consumer);
  }

  @Scenario
  static void transactionToATopic(World world) throws Exception {
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    Topic topic = session.createTopic(world.name("t"));
    MessageConsumer first = world.session().createConsumer(topic);
    MessageConsumer second = world.session().createConsumer(topic);
    World.sendTexts(session, topic, "undone");
    session.rollback();
    World.sendTexts(session, topic, "1", "2");
    World.nothing(first);
    session.commit();
    World.texts(first, "1", "2");
    World.texts(second, "1", "2");
  }

  @Scenario
  static void queueAndTopicOfTheSameKindStayApart(World world) throws Exception {
    Session session = world.session();
    MessageConsumer fromTopic = session.createConsumer(session.createTopic(world.name("t")));
    MessageConsumer fromQueue = session.createConsumer(session.createQueue(world.name("q")));
    World.sendTexts(session, session.createTopic(world.name("t")), "topic");
    World.sendTexts(session, session.createQueue(world.name("q")), "queue");
    World.texts(fromTopic, "topic");
    World.texts(fromQueue, "queue");
  }
}
