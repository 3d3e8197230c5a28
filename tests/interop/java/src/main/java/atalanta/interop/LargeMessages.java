package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.OutputStream;

/** Large messages as streams, compressed, taken up again and looked at. */
final class LargeMessages {
  private static final int SIZE = 12_000_000;

  private LargeMessages() {}

  /** A body that nobody has in memory. */
  private static final class Counted extends InputStream {
    private int at;

    @Override
    public int read() {
      return at < SIZE ? (at++ * 31 >> 3) & 0xff : -1;
    }
  }

  /** Compares what is written with a Counted. */
  private static final class Compared extends OutputStream {
    private final Counted wanted = new Counted();
    private int bytes;

    @Override
    public void write(int value) {
      check(wanted.read() == (value & 0xff), "byte " + bytes + " differs");
      bytes++;
    }
  }

  private static void sendStream(Session session, Queue queue) throws Exception {
    BytesMessage message = session.createBytesMessage();
    message.setObjectProperty("JMS_AMQ_InputStream", new Counted());
    session.createProducer(queue).send(message);
  }

  @Scenario
  static void inputStreamToSaveStream(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    sendStream(session, queue);
    MessageConsumer consumer = world.session().createConsumer(queue);
    Message got = World.arrives(consumer);
    Compared saved = new Compared();
    got.setObjectProperty("JMS_AMQ_SaveStream", saved);
    equal(SIZE, saved.bytes, "bytes saved");
    World.nothing(consumer);
  }

  @Scenario
  static void inputStreamToOutputStream(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    sendStream(session, queue);
    session.createProducer(queue).send(session.createTextMessage("behind"));
    MessageConsumer consumer = world.connect("consumerWindowSize=20000").createSession(false, Session.CLIENT_ACKNOWLEDGE).createConsumer(queue);
    Message got = World.arrives(consumer);
    Compared saved = new Compared();
    got.setObjectProperty("JMS_AMQ_OutputStream", saved);
    TextMessage next = (TextMessage) World.arrives(consumer);
    equal("behind", next.getText(), "what comes behind");
    equal(SIZE, saved.bytes, "bytes saved");
    next.acknowledge();
  }

  @Scenario
  static void compressed(World world) throws Exception {
    Session session = world.connect("compressLargeMessage=true").createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = session.createQueue(world.name("q"));
    String text = "compressible ".repeat(60_000);
    World.sendTexts(session, queue, text, "small");
    sendStream(session, queue);
    MessageConsumer consumer = world.session().createConsumer(queue);
    World.texts(consumer, text, "small");
    ByteArrayOutputStream saved = new ByteArrayOutputStream();
    World.arrives(consumer).setObjectProperty("JMS_AMQ_SaveStream", saved);
    equal(SIZE, saved.size(), "bytes saved");
  }

  @Scenario
  static void recoveredAndClosedInTheMiddle(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    sendStream(session, queue);
    Connection first = world.connect("consumerWindowSize=20000");
    World.arrives(first.createSession(false, Session.CLIENT_ACKNOWLEDGE).createConsumer(queue));
    first.close();
    Session second = world.connect().createSession(false, Session.CLIENT_ACKNOWLEDGE);
    MessageConsumer consumer = second.createConsumer(queue);
    Message got = World.arrives(consumer);
    second.recover();
    got = World.arrives(consumer);
    check(got.getJMSRedelivered(), "redelivered");
    Compared saved = new Compared();
    got.setObjectProperty("JMS_AMQ_SaveStream", saved);
    equal(SIZE, saved.bytes, "bytes saved");
    got.acknowledge();
    World.nothing(consumer);
  }

  @Scenario
  static void browsedAndThenReceived(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    String big = "l".repeat(300_000);
    World.sendTexts(session, queue, big, "small");
    QueueBrowser browser = session.createBrowser(queue);
    var found = browser.getEnumeration();
    equal(big, World.text((Message) found.nextElement()), "browsed");
    equal("small", World.text((Message) found.nextElement()), "browsed");
    browser.close();
    World.texts(session.createConsumer(queue), big, "small");
  }
}
