package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.core.client.ClientSession;

/** Kinds of queues: groups, exclusive, last value, ring, non-destructive, and how a client asks for them. */
final class Queues {
  private Queues() { }

  private static void send(Session session, Destination to, String property, String... values) throws Exception {
    MessageProducer producer = session.createProducer(to);
    for (String value : values) {
      Message message = session.createTextMessage(value);
      message.setStringProperty(property, value.substring(0, 1));
      producer.send(message);
    }
    producer.close();
  }

  /** The client hands the parameters of a queue's name on when it creates the queue for a producer. */
  private static Queue made(Session session, String name) throws Exception {
    Queue queue = session.createQueue(name);
    session.createProducer(queue).close();
    return queue;
  }

  private static List<String> browsed(Session session, Queue queue) throws Exception {
    List<String> texts = new ArrayList<>();
    QueueBrowser browser = session.createBrowser(queue);
    for (Enumeration<?> each = browser.getEnumeration(); each.hasMoreElements(); ) {
      texts.add(World.text((Message) each.nextElement()));
    }
    browser.close();
    return texts;
  }

  private static Session acknowledging(World world) throws Exception {
    return world.connect().createSession(false, Session.CLIENT_ACKNOWLEDGE);
  }

  @Scenario
  static void groupsStayWithOneConsumer(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageConsumer first = world.session().createConsumer(queue);
    MessageConsumer second = world.session().createConsumer(queue);
    for (int i = 0; i < 5; i++) {
      send(session, queue, "JMSXGroupID", "a" + i, "b" + i, "c" + i, "d" + i);
    }
    List<List<String>> got = List.of(World.drained(first), World.drained(second));
    Set<Character> seen = new HashSet<>();
    for (List<String> texts : got) {
      Set<Character> mine = new TreeSet<>();
      texts.forEach(text -> mine.add(text.charAt(0)));
      check(mine.size() == 2 && Collections.disjoint(mine, seen), "groups were split: " + got);
      seen.addAll(mine);
      for (char group : mine) {
        List<String> texts1 = texts.stream().filter(text -> text.charAt(0) == group).toList();
        equal(List.of(group + "0", group + "1", group + "2", group + "3", group + "4"), texts1, "order of group " + group);
      }
    }
  }

  @Scenario
  static void groupMovesWhenItsConsumerLeaves(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    Connection leaving = world.connect();
    MessageConsumer first = leaving.createSession(false, Session.CLIENT_ACKNOWLEDGE).createConsumer(queue);
    send(session, queue, "JMSXGroupID", "g1", "g2", "g3");
    Message message = World.arrives(first);
    equal("g1", World.text(message), "text");
    message.acknowledge();
    MessageConsumer second = world.session().createConsumer(queue);
    World.nothing(second);
    leaving.close();
    send(session, queue, "JMSXGroupID", "g4");
    World.texts(second, "g2", "g3", "g4");
  }

  @Scenario
  static void groupEndsWithSequenceMinusOne(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageConsumer first = world.session().createConsumer(queue);
    send(session, queue, "JMSXGroupID", "g1");
    World.texts(first, "g1");
    MessageConsumer second = world.session().createConsumer(queue);
    Message last = session.createTextMessage("g2");
    last.setStringProperty("JMSXGroupID", "g");
    last.setIntProperty("JMSXGroupSeq", -1);
    session.createProducer(queue).send(last);
    World.texts(first, "g2");
    first.close();
    send(session, queue, "JMSXGroupID", "g3");
    World.texts(second, "g3");
  }

  @Scenario
  static void groupRebalancesAndMarksItsFirst(World world) throws Exception {
    Session session = world.session();
    Queue queue = made(session, world.name("q") + "?group-rebalance=true&group-first-key=first");
    MessageConsumer first = world.session().createConsumer(queue);
    send(session, queue, "JMSXGroupID", "a1", "b1", "a2");
    for (String wanted : new String[] {"a1", "b1", "a2"}) {
      Message message = World.arrives(first);
      equal(wanted, World.text(message), "text");
      equal(wanted.endsWith("1"), message.getBooleanProperty("first"), "first of " + wanted);
    }
    MessageConsumer second = world.session().createConsumer(queue);
    send(session, queue, "JMSXGroupID", "a3", "b3");
    equal(1, World.drained(first).size(), "messages of the first consumer");
    equal(1, World.drained(second).size(), "messages of the second consumer");
  }

  @Scenario
  static void exclusiveServesOneConsumerAtATime(World world) throws Exception {
    Session session = world.session();
    Queue queue = made(session, world.name("q") + "?exclusive=true");
    Connection leaving = world.connect();
    MessageConsumer first = leaving.createSession(false, Session.CLIENT_ACKNOWLEDGE).createConsumer(queue);
    World.sendTexts(session, queue, "1");
    Message message = World.arrives(first);
    message.acknowledge();
    MessageConsumer second = world.session().createConsumer(queue);
    World.sendTexts(session, queue, "2", "3");
    World.nothing(second);
    leaving.close();
    World.sendTexts(session, queue, "4");
    World.texts(second, "2", "3", "4");
  }

  @Scenario
  static void higherConsumerPriorityComesFirst(World world) throws Exception {
    Session session = world.session();
    String name = world.name("q");
    Queue queue = session.createQueue(name);
    MessageConsumer low = world.session().createConsumer(session.createQueue(name + "?consumer-priority=-5"));
    Connection leaving = world.connect();
    MessageConsumer high = leaving.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(session.createQueue(name + "?consumer-priority=10"));
    World.sendTexts(session, queue, "1", "2", "3", "4");
    World.texts(high, "1", "2", "3", "4");
    World.nothing(low);
    leaving.close();
    World.sendTexts(session, queue, "5");
    World.texts(low, "5");
  }

  @Scenario
  static void lastValueReplacesWhatWaits(World world) throws Exception {
    Session session = world.session();
    Queue queue = made(session, world.name("q") + "?last-value=true");
    send(session, queue, "_AMQ_LVQ_NAME", "a1", "b1", "a2", "c1", "a3");
    World.sendTexts(session, queue, "plain", "plain");
    // What Artemis does with the order of values is its own: it is the set that counts.
    MessageConsumer consumer = acknowledging(world).createConsumer(queue);
    List<String> got = World.drained(consumer);
    Collections.sort(got);
    equal(List.of("a3", "b1", "c1", "plain", "plain"), got, "values");
  }

  @Scenario
  static void lastValueWithAKeyOfItsOwn(World world) throws Exception {
    Session session = world.session();
    Queue queue = made(session, world.name("q") + "?last-value-key=symbol&non-destructive=true");
    Connection leaving = world.connect();
    MessageConsumer first = leaving.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue);
    send(session, queue, "symbol", "a1", "b1", "c1");
    World.texts(first, "a1", "b1", "c1");
    send(session, queue, "symbol", "a2");
    World.texts(first, "a2");
    leaving.close();
    MessageConsumer second = world.session().createConsumer(queue);
    List<String> got = World.drained(second);
    Collections.sort(got);
    equal(List.of("a2", "b1", "c1"), got, "values that a later reader finds");
  }

  @Scenario
  static void nonDestructiveKeepsWhatIsConsumed(World world) throws Exception {
    Session session = world.session();
    Queue queue = made(session, world.name("q") + "?non-destructive=true");
    World.sendTexts(session, queue, "1", "2", "3");
    World.texts(world.session().createConsumer(queue), "1", "2", "3");
    World.texts(world.session().createConsumer(queue), "1", "2", "3");
    equal(List.of("1", "2", "3"), browsed(session, queue), "what a browser sees");
  }

  @Scenario
  static void ringKeepsTheNewest(World world) throws Exception {
    Session session = world.session();
    Queue queue = made(session, world.name("q") + "?ring-size=3");
    World.sendTexts(session, queue, "1", "2", "3", "4", "5");
    World.until("the ring is cut", () -> browsed(session, queue).size() == 3);
    World.texts(session.createConsumer(queue), "3", "4", "5");
  }

  @Scenario
  static void dispatchWaitsForConsumers(World world) throws Exception {
    Session session = world.session();
    Queue queue = made(session, world.name("q") + "?consumers-before-dispatch=2");
    MessageConsumer first = world.session().createConsumer(queue);
    World.sendTexts(session, queue, "1", "2", "3", "4");
    World.nothing(first);
    MessageConsumer second = world.session().createConsumer(queue);
    equal(2, World.drained(first).size(), "messages of the first consumer");
    equal(2, World.drained(second).size(), "messages of the second consumer");
  }

  @Scenario
  static void dispatchWaitsNoLongerThanItsDelay(World world) throws Exception {
    Session session = world.session();
    Queue queue = made(session, world.name("q") + "?consumers-before-dispatch=2&delay-before-dispatch=1000");
    MessageConsumer first = session.createConsumer(queue);
    World.sendTexts(session, queue, "1");
    World.nothing(first);
    World.texts(first, "1");
  }

  @Scenario
  static void maxConsumersIsALimit(World world) throws Exception {
    Session session = world.session();
    Queue queue = made(session, world.name("q") + "?max-consumers=1");
    MessageConsumer first = world.session().createConsumer(queue);
    World.refused(JMSException.class, () -> world.session().createConsumer(queue));
    session.createBrowser(queue).getEnumeration();
    first.close();
    World.sendTexts(session, queue, "1");
    World.texts(world.session().createConsumer(queue), "1");
  }

  @Scenario
  static void purgeWithoutConsumers(World world) throws Exception {
    Session session = world.session();
    Queue queue = made(session, world.name("q") + "?purge-on-no-consumers=true");
    World.sendTexts(session, queue, "unheard");
    MessageConsumer slow = world.connect("consumerWindowSize=0").createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue);
    World.sendTexts(session, queue, "1", "2", "3");
    World.texts(slow, "1");
    slow.close();
    World.until("the queue is purged", () -> browsed(session, queue).isEmpty());
    MessageConsumer next = session.createConsumer(queue);
    World.sendTexts(session, queue, "4");
    World.texts(next, "4");
  }

  @Scenario
  static void attributesAreAnsweredAsAskedFor(World world) throws Exception {
    ClientSession core = world.core();
    SimpleString name = SimpleString.of(world.name("q"));
    core.createQueue(QueueConfiguration.of(name).setRoutingType(RoutingType.ANYCAST).setExclusive(true).setLastValueKey("k")
        .setNonDestructive(true).setConsumersBeforeDispatch(1).setDelayBeforeDispatch(7L).setGroupRebalance(true)
        .setGroupRebalancePauseDispatch(true).setGroupBuckets(9).setGroupFirstKey("f").setRingSize(11L).setMaxConsumers(4)
        .setPurgeOnNoConsumers(false).setEnabled(true));
    ClientSession.QueueQuery found = core.queueQuery(name);
    equal(List.of(true, "k", true, 1, 7L), List.of(found.isExclusive(), found.getLastValueKey().toString(), found.isNonDestructive(),
        found.getConsumersBeforeDispatch(), found.getDelayBeforeDispatch()), "answer");
    equal(List.of(true, true, 9, "f", 11L, 4), List.of(found.isGroupRebalance(), found.isGroupRebalancePauseDispatch(),
        found.getGroupBuckets(), found.getGroupFirstKey().toString(), found.getRingSize(), found.getMaxConsumers()), "answer");
    ClientSession.QueueQuery absent = core.queueQuery(SimpleString.of(world.name("absent")));
    equal(List.of(false, false, -1), List.of(absent.isExclusive(), absent.isLastValue(), absent.getGroupBuckets()), "defaults");
  }

  @Scenario(phase = "before")
  static void kindsAreDurable(World world) throws Exception {
    Session session = world.session();
    Queue values = made(session, world.name("values") + "?last-value=true");
    Queue ring = made(session, world.name("ring") + "?ring-size=2");
    send(session, values, "_AMQ_LVQ_NAME", "a1", "b1", "a2");
    World.sendTexts(session, ring, "1", "2", "3");
  }

  @Scenario(phase = "after")
  static void kindsAreDurableAfter(World world) throws Exception {
    Session session = world.session();
    Queue values = session.createQueue(world.name("values").replace("kindsAreDurableAfter", "kindsAreDurable"));
    Queue ring = session.createQueue(world.name("ring").replace("kindsAreDurableAfter", "kindsAreDurable"));
    send(session, values, "_AMQ_LVQ_NAME", "b2");
    World.sendTexts(session, ring, "4");
    List<String> got = World.drained(session.createConsumer(values));
    Collections.sort(got);
    equal(List.of("a2", "b2"), got, "values");
    World.texts(session.createConsumer(ring), "3", "4");
  }
}
