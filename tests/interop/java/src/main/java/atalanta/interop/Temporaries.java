package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.QueueRequestor;
import jakarta.jms.QueueSession;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.jms.client.ActiveMQQueueConnectionFactory;

/** Temporary queues and topics. */
final class Temporaries {
  private Temporaries() { }

  @Scenario
  static void requestAndReply(World world) throws Exception {
    Session server = world.session();
    Queue requests = server.createQueue(world.name("requests"));
    MessageConsumer consumer = server.createConsumer(requests);
    consumer.setMessageListener(request -> {
      try {
        TextMessage reply = server.createTextMessage("re: " + World.text(request));
        reply.setJMSCorrelationID(request.getJMSMessageID());
        server.createProducer(null).send(request.getJMSReplyTo(), reply);
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    });
    Session client = world.session();
    TemporaryQueue answers = client.createTemporaryQueue();
    MessageConsumer replies = client.createConsumer(answers);
    for (int i = 0; i < 10; i++) {
      Message request = client.createTextMessage("question " + i);
      request.setJMSReplyTo(answers);
      client.createProducer(requests).send(request);
      Message reply = World.arrives(replies);
      equal("re: question " + i, World.text(reply), "reply");
      equal(request.getJMSMessageID(), reply.getJMSCorrelationID(), "correlation id");
    }
  }

  @Scenario
  static void queueRequestor(World world) throws Exception {
    Session server = world.session();
    Queue requests = server.createQueue(world.name("requests"));
    server.createConsumer(requests).setMessageListener(request -> {
      try {
        server.createProducer(null).send(request.getJMSReplyTo(), server.createTextMessage("answer"));
      } catch (JMSException e) {
        throw new IllegalStateException(e);
      }
    });
    var factory = world.kept(new ActiveMQQueueConnectionFactory(world.url + "?useTopologyForLoadBalancing=false"));
    var connection = world.kept(factory.createQueueConnection(world.user, world.password));
    connection.start();
    QueueSession session = connection.createQueueSession(false, Session.AUTO_ACKNOWLEDGE);
    QueueRequestor requestor = new QueueRequestor(session, requests);
    equal("answer", World.text(requestor.request(session.createTextMessage("?"))), "answer");
    requestor.close();
  }

  @Scenario
  static void temporaryQueueEndsWithItsConnection(World world) throws Exception {
    Connection connection = world.connect();
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    TemporaryQueue queue = session.createTemporaryQueue();
    World.sendTexts(world.session(), queue, "in time");
    World.texts(session.createConsumer(queue), "in time");
    SimpleString name = SimpleString.of(queue.getQueueName());
    check(world.core().queueQuery(name).isExists(), "the queue exists while its connection is open");
    connection.close();
    World.until("the temporary queue is gone", () -> !world.core().queueQuery(name).isExists());
  }

  @Scenario
  static void deletedTemporaryQueueIsGone(World world) throws Exception {
    Session session = world.session();
    TemporaryQueue queue = session.createTemporaryQueue();
    MessageConsumer consumer = session.createConsumer(queue);
    World.refused(JMSException.class, queue::delete);
    consumer.close();
    queue.delete();
    check(!world.core().queueQuery(SimpleString.of(queue.getQueueName())).isExists(), "the queue is gone");
  }

  @Scenario
  static void temporaryQueuesAreDifferent(World world) throws Exception {
    Session session = world.session();
    TemporaryQueue first = session.createTemporaryQueue();
    TemporaryQueue second = session.createTemporaryQueue();
    check(!first.getQueueName().equals(second.getQueueName()), "two names");
    World.sendTexts(world.session(), second, "second");
    World.sendTexts(world.session(), first, "first");
    World.texts(session.createConsumer(first), "first");
    World.texts(session.createConsumer(second), "second");
  }

  @Scenario
  static void temporaryTopic(World world) throws Exception {
    Session session = world.session();
    TemporaryTopic topic = session.createTemporaryTopic();
    MessageConsumer first = session.createConsumer(topic);
    MessageConsumer second = session.createConsumer(topic);
    World.sendTexts(world.session(), topic, "1", "2");
    World.texts(first, "1", "2");
    World.texts(second, "1", "2");
  }

  @Scenario
  static void replyToATemporaryTopic(World world) throws Exception {
    Session session = world.session();
    TemporaryTopic topic = session.createTemporaryTopic();
    MessageConsumer replies = session.createConsumer(topic);
    Message request = session.createTextMessage("?");
    request.setJMSReplyTo(topic);
    Message got = world.round(session, request);
    Destination back = got.getJMSReplyTo();
    World.sendTexts(world.session(), back, "!");
    World.texts(replies, "!");
  }
}
