package atalanta.openwire;

import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.BytesMessage;
import javax.jms.DeliveryMode;
import javax.jms.InvalidClientIDException;
import javax.jms.InvalidDestinationException;
import javax.jms.InvalidSelectorException;
import javax.jms.JMSSecurityException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.RedeliveryPolicy;
import org.apache.activemq.ScheduledMessage;

/** Flows of queues. */
final class Queues {
  private Queues() {}

  static void automatic(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    World.send(session, world.name, "1", "2", "3");
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    for (String text : new String[] {"1", "2", "3"}) {
      World.same(text, World.text(consumer));
    }
    consumer.close();
    World.nothing(session.createConsumer(session.createQueue(world.name)));
  }

  static void listener(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    CountDownLatch arrived = new CountDownLatch(500);
    session.createConsumer(session.createQueue(world.name)).setMessageListener(message -> arrived.countDown());
    Session sending = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = sending.createProducer(sending.createQueue(world.name));
    producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
    for (int at = 0; at < 500; at++) {
      producer.send(sending.createTextMessage("" + at));
    }
    World.same(true, arrived.await(World.WAIT_MS, TimeUnit.MILLISECONDS));
  }

  static void dupsOk(World world) throws Exception {
    Session session = world.session(Session.DUPS_OK_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    MessageProducer producer = session.createProducer(session.createQueue(world.name));
    for (int at = 0; at < 3000; at++) {
      producer.send(session.createTextMessage("" + at), DeliveryMode.NON_PERSISTENT, 4, 0);
    }
    for (int at = 0; at < 3000; at++) {
      World.same("" + at, World.text(consumer));
    }
    consumer.close();
    World.nothing(session.createConsumer(session.createQueue(world.name)));
  }

  static void clientAcknowledge(World world) throws Exception {
    Session session = world.session(Session.CLIENT_ACKNOWLEDGE);
    World.send(session, world.name, "1", "2", "3");
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    World.same("1", World.text(consumer));
    World.same("2", World.text(consumer));
    session.recover();
    Message again = consumer.receive(World.WAIT_MS);
    World.same("1", World.text(again));
    World.same(true, again.getJMSRedelivered());
    World.same("2", World.text(consumer));
    again.acknowledge();
    consumer.close();
    consumer = session.createConsumer(session.createQueue(world.name));
    World.same("3", World.text(consumer));
  }

  static void individual(World world) throws Exception {
    Session session = world.session(ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE);
    World.send(session, world.name, "1", "2", "3");
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    World.same("1", World.text(consumer));
    Message second = consumer.receive(World.WAIT_MS);
    second.acknowledge();
    consumer.close();
    consumer = session.createConsumer(session.createQueue(world.name));
    Message first = consumer.receive(World.WAIT_MS);
    World.same("1", World.text(first));
    World.same(true, first.getJMSRedelivered());
    World.same("3", World.text(consumer));
  }

  static void asynchronous(World world) throws Exception {
    Session session = world.connect("jms.useAsyncSend=true&jms.producerWindowSize=100000", null)
        .createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = session.createProducer(session.createQueue(world.name));
    for (int at = 0; at < 1000; at++) {
      BytesMessage message = session.createBytesMessage();
      message.writeBytes(new byte[1000]);
      message.setIntProperty("n", at);
      producer.send(message);
    }
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    for (int at = 0; at < 1000; at++) {
      World.same(at, consumer.receive(World.WAIT_MS).getIntProperty("n"));
    }
  }

  static void browser(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    String[] texts = new String[1200];
    for (int at = 0; at < texts.length; at++) {
      texts[at] = "" + at;
    }
    World.send(session, world.name, texts);
    for (int round = 0; round < 2; round++) {
      var browser = session.createBrowser(session.createQueue(world.name));
      Enumeration<?> found = browser.getEnumeration();
      int seen = 0;
      while (found.hasMoreElements()) {
        World.same("" + seen, World.text((Message) found.nextElement()));
        seen++;
      }
      World.same(texts.length, seen);
      browser.close();
    }
    World.same("0", World.text(session.createConsumer(session.createQueue(world.name))));
  }

  static void selector(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = session.createProducer(session.createQueue(world.name));
    for (int at = 0; at < 10; at++) {
      Message message = session.createTextMessage("" + at);
      message.setIntProperty("n", at);
      message.setStringProperty("kind", at % 2 == 0 ? "even" : "odd");
      producer.send(message);
    }
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name), "kind = 'odd' AND n > 4");
    for (String text : new String[] {"5", "7", "9"}) {
      World.same(text, World.text(consumer));
    }
    World.nothing(consumer);
    try {
      session.createConsumer(session.createQueue(world.name), "n >");
      throw new AssertionError("a wrong selector was accepted");
    } catch (InvalidSelectorException expected) {
      return;
    }
  }

  static void withoutPrefetch(World world) throws Exception {
    Session session = world.connect("jms.prefetchPolicy.all=0", null).createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    World.same(null, consumer.receiveNoWait());
    World.same(null, consumer.receive(300));
    Session other = world.session(Session.AUTO_ACKNOWLEDGE);
    World.send(other, world.name, "1", "2", "3");
    World.same("1", World.text(consumer.receiveNoWait()));
    World.same("2", World.text(consumer.receive()));
    World.same("3", World.text(other.createConsumer(other.createQueue(world.name))));
  }

  static void requestReply(World world) throws Exception {
    Session replying = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageProducer replies = replying.createProducer(null);
    replying.createConsumer(replying.createQueue(world.name)).setMessageListener(
        request -> {
          try {
            Message answer = replying.createTextMessage("re: " + World.text(request));
            answer.setJMSCorrelationID(request.getJMSMessageID());
            replies.send(request.getJMSReplyTo(), answer);
          } catch (Exception failure) {
            failure.printStackTrace();
          }
        });
    for (int round = 0; round < 50; round++) {
      ActiveMQConnection connection = world.connect();
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      TemporaryQueue own = session.createTemporaryQueue();
      MessageConsumer consumer = session.createConsumer(own);
      Message request = session.createTextMessage("" + round);
      request.setJMSReplyTo(own);
      session.createProducer(session.createQueue(world.name)).send(request);
      Message answer = consumer.receive(World.WAIT_MS);
      World.same("re: " + round, World.text(answer));
      World.same(request.getJMSMessageID(), answer.getJMSCorrelationID());
      consumer.close();
      own.delete();
      connection.close();
    }
  }

  static void deletedTemporary(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    ActiveMQConnection owner = world.connect();
    TemporaryQueue gone = owner.createSession(false, Session.AUTO_ACKNOWLEDGE).createTemporaryQueue();
    session.createProducer(gone).send(session.createTextMessage("1"));
    owner.close();
    try {
      for (int round = 0; round < 20; round++) {
        session.createProducer(gone).send(session.createTextMessage("2"));
        Thread.sleep(50);
      }
      throw new AssertionError("a deleted queue took a message");
    } catch (InvalidDestinationException expected) {
      return;
    }
  }

  static void deadLetter(World world) throws Exception {
    ActiveMQConnection connection = world.connect();
    RedeliveryPolicy policy = new RedeliveryPolicy();
    policy.setMaximumRedeliveries(2);
    policy.setInitialRedeliveryDelay(0);
    policy.setRedeliveryDelay(0);
    connection.setRedeliveryPolicy(policy);
    Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
    World.send(session, world.name, "poison", "good");
    session.commit();
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    for (int attempt = 1; attempt <= 3; attempt++) {
      Message message = consumer.receive(World.WAIT_MS);
      World.same("poison", World.text(message));
      World.same(attempt, message.getIntProperty("JMSXDeliveryCount"));
      session.rollback();
    }
    World.same("good", World.text(consumer));
    session.commit();
    Session other = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageConsumer dead = other.createConsumer(other.createQueue("DLQ"));
    Message found = dead.receive(World.WAIT_MS);
    while (!"poison".equals(World.text(found))) {
      World.same(true, found != null);
      found = dead.receive(World.WAIT_MS);
    }
    World.same(true, found.getStringProperty("dlqDeliveryFailureCause") != null);
  }

  static void groups(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    Session other = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageConsumer first = session.createConsumer(session.createQueue(world.name));
    MessageConsumer second = other.createConsumer(other.createQueue(world.name));
    MessageProducer producer = session.createProducer(session.createQueue(world.name));
    for (int at = 0; at < 20; at++) {
      Message message = session.createTextMessage("" + at);
      message.setStringProperty("JMSXGroupID", "g" + at % 4);
      message.setIntProperty("JMSXGroupSeq", at / 4 + 1);
      producer.send(message);
    }
    List<String> found = new ArrayList<>();
    for (MessageConsumer consumer : new MessageConsumer[] {first, second}) {
      List<String> groups = new ArrayList<>();
      for (Message message = consumer.receive(1000); message != null; message = consumer.receive(World.MOMENT_MS)) {
        String group = message.getStringProperty("JMSXGroupID");
        World.same(false, found.contains(group));
        groups.add(group);
      }
      World.same(10, groups.size());
      found.addAll(groups);
    }
  }

  static void scheduled(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    Message message = session.createTextMessage("later");
    message.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, 800);
    session.createProducer(session.createQueue(world.name)).send(message);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    World.nothing(consumer);
    World.same("later", World.text(consumer));
  }

  static void repeated(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    Message message = session.createTextMessage("again");
    message.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_DELAY, 300);
    message.setLongProperty(ScheduledMessage.AMQ_SCHEDULED_PERIOD, 1_000);
    message.setIntProperty(ScheduledMessage.AMQ_SCHEDULED_REPEAT, 3);
    session.createProducer(session.createQueue(world.name)).send(message);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    List<String> ids = new ArrayList<>();
    for (int at = 0; at < 4; at++) {
      Message found = consumer.receive(World.WAIT_MS);
      World.same("again", World.text(found));
      World.same(false, ids.contains(found.getJMSMessageID()));
      ids.add(found.getJMSMessageID());
    }
    World.same(message.getJMSMessageID(), ids.get(0));
    World.nothing(consumer);
  }

  static void expiry(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = session.createProducer(session.createQueue(world.name));
    producer.send(session.createTextMessage("short"), DeliveryMode.PERSISTENT, 4, 100);
    producer.send(session.createTextMessage("long"), DeliveryMode.PERSISTENT, 4, 60_000);
    Thread.sleep(300);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    World.same("long", World.text(consumer));
    World.nothing(consumer);
  }

  static void composite(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    World.send(session, world.name + ".a," + world.name + ".b", "both");
    World.same("both", World.text(session.createConsumer(session.createQueue(world.name + ".a"))));
    World.same("both", World.text(session.createConsumer(session.createQueue(world.name + ".b"))));
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name + ".c," + world.name + ".d"));
    World.send(session, world.name + ".c", "c");
    World.same("c", World.text(consumer));
    World.send(session, world.name + ".d", "d");
    World.same("d", World.text(consumer));
  }

  static void queueWildcards(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    World.send(session, world.name + ".first", "1");
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name + ".>"));
    World.same("1", World.text(consumer));
    World.send(session, world.name + ".second.deep", "2");
    World.same("2", World.text(consumer));
  }

  static void exclusive(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageConsumer plain = session.createConsumer(session.createQueue(world.name));
    MessageConsumer first = session.createConsumer(session.createQueue(world.name + "?consumer.exclusive=true"));
    MessageConsumer second = session.createConsumer(session.createQueue(world.name + "?consumer.exclusive=true"));
    World.send(session, world.name, "1", "2");
    World.same("1", World.text(first));
    World.same("2", World.text(first));
    first.close();
    World.send(session, world.name, "3");
    World.same("3", World.text(second));
    World.nothing(plain);
  }

  static void priority(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageConsumer low = session.createConsumer(session.createQueue(world.name));
    MessageConsumer high = session.createConsumer(session.createQueue(world.name + "?consumer.priority=10"));
    World.send(session, world.name, "1", "2");
    World.same("1", World.text(high));
    World.same("2", World.text(high));
    World.nothing(low);
  }

  static void large(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    byte[] content = new byte[5_000_000];
    for (int at = 0; at < content.length; at++) {
      content[at] = (byte) (at * 31);
    }
    BytesMessage message = session.createBytesMessage();
    message.writeBytes(content);
    session.createProducer(session.createQueue(world.name)).send(message);
    BytesMessage found = (BytesMessage) session.createConsumer(session.createQueue(world.name)).receive(World.WAIT_MS);
    byte[] got = new byte[content.length];
    World.same((long) content.length, found.getBodyLength());
    found.readBytes(got);
    World.same(true, java.util.Arrays.equals(content, got));
  }

  static void refusedLogins(World world) throws Exception {
    try {
      new ActiveMQConnectionFactory("admin", "wrong", world.url).createConnection().start();
      throw new AssertionError("a wrong password was accepted");
    } catch (JMSSecurityException expected) {
      World.same(true, expected.getMessage() != null);
    }
    world.connect("", "taken");
    try {
      world.connect("", "taken");
      throw new AssertionError("a client id was given twice");
    } catch (InvalidClientIDException expected) {
      return;
    }
  }

  static void keptAlive(World world) throws Exception {
    ActiveMQConnection connection = world.connect("wireFormat.maxInactivityDuration=1500", null);
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Thread.sleep(5000);
    World.send(session, world.name, "1");
    World.same("1", World.text(session.createConsumer(session.createQueue(world.name))));
    World.same(false, connection.isClosed() || connection.isTransportFailed());
  }
}
