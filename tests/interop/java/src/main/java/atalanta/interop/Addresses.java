package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.Set;
import java.util.TreeSet;
import org.apache.activemq.artemis.api.core.ActiveMQQueueExistsException;
import org.apache.activemq.artemis.api.core.Message;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.core.client.ClientSession;

/** Addresses and their queues: FQQN, queue filters, auto-create ("nocreate.#" refuses it) and auto-delete ("autodel.#"). */
final class Addresses {
  private Addresses() { }

  private static void queue(ClientSession core, String address, String queue, RoutingType routing, String filter) throws Exception {
    core.createQueue(QueueConfiguration.of(queue).setAddress(address).setRoutingType(routing).setDurable(true).setFilterString(filter));
  }

  @Scenario
  static void consumeByFullyQualifiedName(World world) throws Exception {
    ClientSession core = world.core();
    String address = world.name("a");
    queue(core, address, world.name("q1"), RoutingType.MULTICAST, null);
    queue(core, address, world.name("q2"), RoutingType.MULTICAST, null);
    Session session = world.session();
    World.sendTexts(session, session.createTopic(address), "1", "2");
    World.texts(session.createConsumer(session.createQueue(address + "::" + world.name("q1"))), "1", "2");
    World.texts(session.createConsumer(session.createQueue(address + "::" + world.name("q2"))), "1", "2");
  }

  @Scenario
  static void sendByFullyQualifiedName(World world) throws Exception {
    ClientSession core = world.core();
    String address = world.name("a");
    queue(core, address, world.name("q1"), RoutingType.ANYCAST, null);
    queue(core, address, world.name("q2"), RoutingType.ANYCAST, null);
    Session session = world.session();
    Queue second = session.createQueue(address + "::" + world.name("q2"));
    World.sendTexts(session, second, World.numbered("m", 0, 6));
    World.texts(session.createConsumer(second), World.numbered("m", 0, 6));
    World.nothing(session.createConsumer(session.createQueue(address + "::" + world.name("q1"))));
  }

  @Scenario
  static void fullyQualifiedNameIsCreated(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("a") + "::" + world.name("q"));
    MessageConsumer consumer = session.createConsumer(queue);
    World.sendTexts(world.session(), queue, "1");
    World.texts(consumer, "1");
    equal(world.name("a"), world.core().queueQuery(SimpleString.of(world.name("q"))).getAddress().toString(), "address of the queue");
  }

  @Scenario
  static void anycastQueuesOfOneAddressShare(World world) throws Exception {
    ClientSession core = world.core();
    String address = world.name("a");
    queue(core, address, world.name("q1"), RoutingType.ANYCAST, null);
    queue(core, address, world.name("q2"), RoutingType.ANYCAST, null);
    Session session = world.session();
    var producer = core.createProducer(address);
    for (int i = 0; i < 10; i++) {
      var message = core.createMessage(Message.TEXT_TYPE, true);
      message.setRoutingType(RoutingType.ANYCAST);
      message.getBodyBuffer().writeNullableSimpleString(SimpleString.of("m" + i));
      producer.send(message);
    }
    Set<String> all = new TreeSet<>(World.drained(session.createConsumer(session.createQueue(address + "::" + world.name("q1")))));
    equal(5, all.size(), "share of the first queue");
    all.addAll(World.drained(session.createConsumer(session.createQueue(address + "::" + world.name("q2")))));
    equal(10, all.size(), "different messages");
  }

  @Scenario
  static void queueFilterDecidesAtTheAddress(World world) throws Exception {
    ClientSession core = world.core();
    String address = world.name("a");
    queue(core, address, world.name("late"), RoutingType.MULTICAST, "dep_delay > 60");
    queue(core, address, world.name("all"), RoutingType.MULTICAST, null);
    Session session = world.session();
    var producer = session.createProducer(session.createTopic(address));
    for (double delay : new double[] {10, 60, 61, 600}) {
      var message = session.createTextMessage("d" + (int) delay);
      message.setDoubleProperty("dep_delay", delay);
      producer.send(message);
    }
    producer.send(session.createTextMessage("cancelled"));
    MessageConsumer late = session.createConsumer(session.createQueue(address + "::" + world.name("late")));
    World.texts(late, "d61", "d600");
    World.nothing(late);
    World.texts(session.createConsumer(session.createQueue(address + "::" + world.name("all"))), "d10", "d60", "d61", "d600", "cancelled");
  }

  @Scenario
  static void queueMadeTwiceIsRefused(World world) throws Exception {
    ClientSession core = world.core();
    queue(core, world.name("a"), world.name("q"), RoutingType.ANYCAST, null);
    World.refused(ActiveMQQueueExistsException.class, () -> queue(core, world.name("a"), world.name("q"), RoutingType.ANYCAST, null));
  }

  @Scenario
  static void queueQueryCounts(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(session, queue, "1", "2", "3");
    ClientSession core = world.core();
    var query = core.queueQuery(SimpleString.of(queue.getQueueName()));
    check(query.isExists() && query.isDurable() && !query.isTemporary(), "a durable queue exists");
    equal(3L, query.getMessageCount(), "messages");
    equal(0, query.getConsumerCount(), "consumers");
    equal(RoutingType.ANYCAST, query.getRoutingType(), "routing type");
    World.texts(session.createConsumer(queue), "1", "2");
    World.until("one message and one consumer", () -> {
      var now = core.queueQuery(SimpleString.of(queue.getQueueName()));
      return now.getMessageCount() == 1 && now.getConsumerCount() == 1;
    });
    check(!core.queueQuery(SimpleString.of(world.name("other"))).isExists(), "the other queue does not exist");
  }

  @Scenario
  static void deletedQueueIsGone(World world) throws Exception {
    ClientSession core = world.core();
    queue(core, world.name("a"), world.name("q"), RoutingType.ANYCAST, null);
    core.deleteQueue(SimpleString.of(world.name("q")));
    check(!core.queueQuery(SimpleString.of(world.name("q"))).isExists(), "the queue is gone");
    World.refused(org.apache.activemq.artemis.api.core.ActiveMQNonExistentQueueException.class,
        () -> core.deleteQueue(SimpleString.of(world.name("q"))));
  }

  @Scenario
  static void autoCreateMayBeOff(World world) throws Exception {
    Session session = world.session();
    World.refused(JMSException.class, () -> session.createConsumer(session.createQueue(world.name("nocreate", "q"))));
    World.refused(JMSException.class, () -> World.sendTexts(session, session.createQueue(world.name("nocreate", "q")), "nowhere"));
    World.refused(JMSException.class, () -> World.sendTexts(session, session.createTopic(world.name("nocreate", "t")), "nowhere"));
  }

  @Scenario
  static void autoCreatedQueueIsDeletedWhenEmptyAndUnused(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("autodel", "q"));
    ClientSession core = world.core();
    World.sendTexts(session, queue, "1", "2");
    MessageConsumer consumer = session.createConsumer(queue);
    World.texts(consumer, "1");
    consumer.close();
    check(core.queueQuery(SimpleString.of(queue.getQueueName())).isExists(), "it stays while a message is in it");
    consumer = session.createConsumer(queue);
    World.texts(consumer, "2");
    consumer.close();
    World.until("the queue is deleted", () -> !core.queueQuery(SimpleString.of(queue.getQueueName())).isExists());
    World.sendTexts(session, queue, "3");
    World.texts(session.createConsumer(queue), "3");
  }
}
