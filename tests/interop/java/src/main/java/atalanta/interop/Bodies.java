package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/** Every kind of body arrives as it was sent. */
final class Bodies {
  private Bodies() { }

  @Scenario
  static void text(World world) throws Exception {
    textArrives(world, "hello");
  }

  @Scenario
  static void textEmpty(World world) throws Exception {
    textArrives(world, "");
  }

  @Scenario
  static void textNull(World world) throws Exception {
    textArrives(world, null);
  }

  @Scenario
  static void textUnicode(World world) throws Exception {
    textArrives(world, "Übergrößenträger \u0000 \u4e2d\u6587 \ud83d\ude80 \ud83d\udc69\u200d\ud83d\ude80 \uffff \ud800");
  }

  @Scenario
  static void textAroundTheEncodingLimits(World world) throws Exception {
    for (int length : new int[] {8, 9, 10, 4094, 4095, 4096, 20000}) {
      textArrives(world, "ä".repeat(length));
    }
  }

  private static void textArrives(World world, String text) throws JMSException {
    Session session = world.session();
    equal(text, world.round(session, session.createTextMessage(text)).getText(), "text");
  }

  @Scenario
  static void noBody(World world) throws Exception {
    Session session = world.session();
    Message message = session.createMessage();
    message.setStringProperty("only", "properties");
    equal("properties", world.round(session, message).getStringProperty("only"), "property");
  }

  @Scenario
  static void bytes(World world) throws Exception {
    Session session = world.session();
    BytesMessage message = session.createBytesMessage();
    message.writeByte((byte) -7);
    message.writeShort(Short.MIN_VALUE);
    message.writeInt(Integer.MIN_VALUE);
    message.writeLong(Long.MIN_VALUE);
    message.writeFloat(1.5f);
    message.writeDouble(Math.PI);
    message.writeBoolean(true);
    message.writeChar('Ω');
    message.writeUTF("Zeichen \ud83d\ude80");
    message.writeBytes(new byte[] {1, 2, 3});
    BytesMessage got = world.round(session, message);
    equal((byte) -7, got.readByte(), "byte");
    equal(Short.MIN_VALUE, got.readShort(), "short");
    equal(Integer.MIN_VALUE, got.readInt(), "int");
    equal(Long.MIN_VALUE, got.readLong(), "long");
    equal(1.5f, got.readFloat(), "float");
    equal(Math.PI, got.readDouble(), "double");
    equal(true, got.readBoolean(), "boolean");
    equal('Ω', got.readChar(), "char");
    equal("Zeichen \ud83d\ude80", got.readUTF(), "UTF");
    byte[] rest = new byte[3];
    equal(3, got.readBytes(rest), "bytes read");
    equal(new byte[] {1, 2, 3}, rest, "bytes");
  }

  @Scenario
  static void bytesEmpty(World world) throws Exception {
    Session session = world.session();
    BytesMessage got = world.round(session, session.createBytesMessage());
    byte[] body = new byte[(int) got.getBodyLength()];
    got.readBytes(body);
    // An empty body travels as none or as four zero bytes, and a real Artemis hands out the four.
    check(body.length == 0 || Arrays.equals(body, new byte[4]), "body of " + body.length + " bytes");
  }

  @Scenario
  static void bytesOfManySizes(World world) throws Exception {
    for (int size : new int[] {1, 1000, 65536, 100_000, 102_399, 102_400, 102_401}) {
      bytesArrive(world, size, DeliveryMode.PERSISTENT);
    }
  }

  @Scenario
  static void map(World world) throws Exception {
    Session session = world.session();
    MapMessage message = session.createMapMessage();
    message.setBoolean("boolean", true);
    message.setByte("byte", (byte) 1);
    message.setBytes("bytes", new byte[] {9, 8});
    message.setChar("char", 'ç');
    message.setDouble("double", 2.25);
    message.setFloat("float", -0.5f);
    message.setInt("int", 42);
    message.setLong("long", 1L << 60);
    message.setShort("short", (short) 300);
    message.setString("string", "wörd");
    message.setString("null", null);
    MapMessage got = world.round(session, message);
    equal(11, Collections.list(got.getMapNames()).size(), "entries");
    equal(true, got.getBoolean("boolean"), "boolean");
    equal((byte) 1, got.getByte("byte"), "byte");
    equal(new byte[] {9, 8}, got.getBytes("bytes"), "bytes");
    equal('ç', got.getChar("char"), "char");
    equal(2.25, got.getDouble("double"), "double");
    equal(-0.5f, got.getFloat("float"), "float");
    equal(42, got.getInt("int"), "int");
    equal(1L << 60, got.getLong("long"), "long");
    equal((short) 300, got.getShort("short"), "short");
    equal("wörd", got.getString("string"), "string");
    equal(null, got.getString("null"), "null");
  }

  @Scenario
  static void mapEmpty(World world) throws Exception {
    Session session = world.session();
    equal(List.of(), Collections.list(world.round(session, session.createMapMessage()).getMapNames()), "names");
  }

  @Scenario
  static void stream(World world) throws Exception {
    Session session = world.session();
    StreamMessage message = session.createStreamMessage();
    message.writeBoolean(false);
    message.writeByte((byte) 3);
    message.writeBytes(new byte[] {5});
    message.writeChar('x');
    message.writeDouble(0.125);
    message.writeFloat(3f);
    message.writeInt(-1);
    message.writeLong(77L);
    message.writeShort((short) 4);
    message.writeString("ende");
    StreamMessage got = world.round(session, message);
    equal(false, got.readBoolean(), "boolean");
    equal((byte) 3, got.readByte(), "byte");
    byte[] bytes = new byte[1];
    equal(1, got.readBytes(bytes), "bytes read");
    equal((byte) 5, bytes[0], "bytes");
    equal(-1, got.readBytes(bytes), "end of bytes");
    equal('x', got.readChar(), "char");
    equal(0.125, got.readDouble(), "double");
    equal(3f, got.readFloat(), "float");
    equal(-1, got.readInt(), "int");
    equal(77L, got.readLong(), "long");
    equal((short) 4, got.readShort(), "short");
    equal("ende", got.readString(), "string");
  }

  @Scenario
  static void object(World world) throws Exception {
    Session session = world.session();
    ObjectMessage message = session.createObjectMessage("a serializable string");
    equal("a serializable string", world.round(session, message).getObject(), "object");
  }

  @Scenario
  static void large250kBytesDurable(World world) throws Exception {
    bytesArrive(world, 250_000, DeliveryMode.PERSISTENT);
  }

  @Scenario
  static void large250kBytesNonDurable(World world) throws Exception {
    bytesArrive(world, 250_000, DeliveryMode.NON_PERSISTENT);
  }

  @Scenario
  static void large3MegabytesDurable(World world) throws Exception {
    bytesArrive(world, 3_000_000, DeliveryMode.PERSISTENT);
  }

  @Scenario
  static void largeText(World world) throws Exception {
    textArrives(world, "größer ".repeat(40_000));
  }

  @Scenario
  static void largeBetweenSmallKeepsOrder(World world) throws Exception {
    Session session = world.session();
    String big = "b".repeat(200_000);
    World.sendTexts(session, session.createQueue(world.name("q")), "1", big, "2", big, "3");
    World.texts(world.session().createConsumer(session.createQueue(world.name("q"))), "1", big, "2", big, "3");
  }

  @Scenario
  static void largeKeepsItsProperties(World world) throws Exception {
    Session session = world.session();
    TextMessage message = session.createTextMessage("x".repeat(150_000));
    message.setIntProperty("n", 7);
    message.setStringProperty("s", "säge");
    message.setJMSCorrelationID("c");
    TextMessage got = world.round(session, message);
    equal(7, got.getIntProperty("n"), "n");
    equal("säge", got.getStringProperty("s"), "s");
    equal("c", got.getJMSCorrelationID(), "correlation id");
  }

  @Scenario
  static void largeInTransactions(World world) throws Exception {
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    String big = "t".repeat(180_000);
    World.sendTexts(session, session.createQueue(world.name("q")), big + 1);
    session.rollback();
    World.sendTexts(session, session.createQueue(world.name("q")), big + 2, big + 3);
    session.commit();
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name("q")));
    World.texts(consumer, big + 2);
    session.rollback();
    World.texts(consumer, big + 2, big + 3);
    session.commit();
    World.nothing(consumer);
  }

  @Scenario
  static void largeToTwoSubscribers(World world) throws Exception {
    Session session = world.session();
    MessageConsumer first = session.createConsumer(session.createTopic(world.name("t")));
    MessageConsumer second = world.session().createConsumer(session.createTopic(world.name("t")));
    String big = "s".repeat(200_000);
    World.sendTexts(world.session(), session.createTopic(world.name("t")), big);
    World.texts(first, big);
    World.texts(second, big);
  }

  private static void bytesArrive(World world, int size, int mode) throws JMSException {
    Session session = world.session();
    byte[] body = new byte[size];
    new Random(size).nextBytes(body);
    MessageProducer producer = session.createProducer(session.createQueue(world.name("q" + size)));
    producer.setDeliveryMode(mode);
    BytesMessage message = session.createBytesMessage();
    message.writeBytes(body);
    producer.send(message);
    Session other = world.session();
    BytesMessage got = (BytesMessage) World.arrives(other.createConsumer(session.createQueue(world.name("q" + size))));
    equal((long) size, got.getBodyLength(), "body length");
    byte[] back = new byte[size];
    equal(size, got.readBytes(back), "bytes read");
    equal(body, back, "body of " + size + " bytes");
    equal(mode, got.getJMSDeliveryMode(), "delivery mode");
  }
}
