package atalanta.openwire;

import java.util.ArrayList;
import java.util.List;
import javax.jms.BytesMessage;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;

/** Flows between OpenWire and CORE, and of all kinds of messages. */
final class Conversions {
  private Conversions() {}

  private static List<Message> all(Session session) throws Exception {
    List<Message> made = new ArrayList<>();
    made.add(session.createMessage());
    made.add(session.createTextMessage("text é€𝄞"));
    made.add(session.createTextMessage());
    BytesMessage bytes = session.createBytesMessage();
    bytes.writeBytes(new byte[] {0, 1, -1, 127});
    made.add(bytes);
    MapMessage map = session.createMapMessage();
    map.setBoolean("boolean", true);
    map.setByte("byte", (byte) -3);
    map.setShort("short", (short) 300);
    map.setInt("int", 70_000);
    map.setLong("long", 1L << 40);
    map.setFloat("float", 1.5f);
    map.setDouble("double", -2.25);
    map.setChar("char", 'ß');
    map.setString("string", "s");
    map.setBytes("bytes", new byte[] {9});
    made.add(map);
    StreamMessage stream = session.createStreamMessage();
    stream.writeInt(5);
    stream.writeString("six");
    stream.writeBoolean(false);
    stream.writeLong(7);
    made.add(stream);
    ObjectMessage object = session.createObjectMessage();
    object.setObject("an object");
    made.add(object);
    for (Message message : made) {
      message.setStringProperty("string", "é");
      message.setIntProperty("int", -1);
      message.setLongProperty("long", 1L << 33);
      message.setBooleanProperty("boolean", true);
      message.setDoubleProperty("double", 0.5);
      message.setFloatProperty("float", 0.25f);
      message.setShortProperty("short", (short) 2);
      message.setByteProperty("byte", (byte) 3);
      message.setJMSType("type");
      message.setJMSCorrelationID("correlation");
    }
    return made;
  }

  private static void check(List<Message> found) throws Exception {
    World.same("text é€𝄞", ((TextMessage) found.get(1)).getText());
    World.same(null, ((TextMessage) found.get(2)).getText());
    BytesMessage bytes = (BytesMessage) found.get(3);
    World.same(4L, bytes.getBodyLength());
    MapMessage map = (MapMessage) found.get(4);
    World.same(true, map.getObject("boolean"));
    World.same((byte) -3, map.getObject("byte"));
    World.same((short) 300, map.getObject("short"));
    World.same(70_000, map.getObject("int"));
    World.same(1L << 40, map.getObject("long"));
    World.same(1.5f, map.getObject("float"));
    World.same(-2.25, map.getObject("double"));
    World.same('ß', map.getObject("char"));
    World.same("s", map.getObject("string"));
    World.same(1, map.getBytes("bytes").length);
    StreamMessage stream = (StreamMessage) found.get(5);
    World.same(5, stream.readObject());
    World.same("six", stream.readObject());
    World.same(false, stream.readObject());
    World.same(7L, stream.readObject());
    World.same("an object", ((ObjectMessage) found.get(6)).getObject());
    for (Message message : found) {
      World.same("é", message.getObjectProperty("string"));
      World.same(-1, message.getObjectProperty("int"));
      World.same(1L << 33, message.getObjectProperty("long"));
      World.same(true, message.getObjectProperty("boolean"));
      World.same(0.5, message.getObjectProperty("double"));
      World.same(0.25f, message.getObjectProperty("float"));
      World.same((short) 2, message.getObjectProperty("short"));
      World.same((byte) 3, message.getObjectProperty("byte"));
      World.same("type", message.getJMSType());
      World.same("correlation", message.getJMSCorrelationID());
    }
  }

  private static void round(World world, Session session) throws Exception {
    MessageProducer producer = session.createProducer(session.createQueue(world.name));
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    List<Message> found = new ArrayList<>();
    for (Message message : all(session)) {
      producer.send(message);
      Message got = consumer.receive(World.WAIT_MS);
      World.same(message.getJMSMessageID(), got.getJMSMessageID());
      World.same(session.createQueue(world.name), got.getJMSDestination());
      found.add(got);
    }
    check(found);
  }

  static void bodies(World world) throws Exception {
    ActiveMQConnection connection = world.connect();
    connection.setTrustAllPackages(true);
    round(world, connection.createSession(false, Session.AUTO_ACKNOWLEDGE));
  }

  static void compressedBodies(World world) throws Exception {
    ActiveMQConnection connection = world.connect("jms.useCompression=true", null);
    connection.setTrustAllPackages(true);
    round(world, connection.createSession(false, Session.AUTO_ACKNOWLEDGE));
  }

  static void looseUncached(World world) throws Exception {
    ActiveMQConnection connection =
        world.connect("wireFormat.tightEncodingEnabled=false&wireFormat.cacheEnabled=false", null);
    connection.setTrustAllPackages(true);
    round(world, connection.createSession(false, Session.AUTO_ACKNOWLEDGE));
  }

  static void oldVersion(World world) throws Exception {
    ActiveMQConnection connection = world.connect("wireFormat.version=9", null);
    connection.setTrustAllPackages(true);
    round(world, connection.createSession(false, Session.AUTO_ACKNOWLEDGE));
  }

  private static javax.jms.Session core(World world) throws Exception {
    String url = world.url.replaceAll("failover:\\(|\\).*", "").replaceAll("\\?.*", "");
    var factory = new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory(url, "admin", "admin");
    factory.setDeserializationAllowList("java.lang");
    javax.jms.Connection connection = factory.createConnection();
    world.add(connection::close);
    world.add(factory::close);
    connection.start();
    return connection.createSession(false, javax.jms.Session.AUTO_ACKNOWLEDGE);
  }

  static void openWireToCore(World world) throws Exception {
    javax.jms.Session core = core(world);
    javax.jms.MessageConsumer consumer = core.createConsumer(core.createQueue(world.name));
    ActiveMQConnection connection = world.connect();
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = session.createProducer(session.createQueue(world.name));
    List<javax.jms.Message> found = new ArrayList<>();
    for (Message message : all(session)) {
      message.setJMSReplyTo(session.createQueue("replies"));
      producer.send(message);
      found.add(consumer.receive(World.WAIT_MS));
    }
    World.same("text é€𝄞", ((javax.jms.TextMessage) found.get(1)).getText());
    World.same(4L, ((javax.jms.BytesMessage) found.get(3)).getBodyLength());
    var map = (javax.jms.MapMessage) found.get(4);
    World.same(70_000, map.getObject("int"));
    World.same('ß', map.getObject("char"));
    World.same("s", map.getObject("string"));
    var stream = (javax.jms.StreamMessage) found.get(5);
    World.same(5, stream.readObject());
    World.same("six", stream.readObject());
    World.same(false, stream.readObject());
    World.same("an object", ((javax.jms.ObjectMessage) found.get(6)).getObject());
    for (javax.jms.Message message : found) {
      World.same("é", message.getObjectProperty("string"));
      World.same(1L << 33, message.getObjectProperty("long"));
      World.same((byte) 3, message.getObjectProperty("byte"));
      World.same("type", message.getJMSType());
      World.same("correlation", message.getJMSCorrelationID());
      World.same("replies", ((javax.jms.Queue) message.getJMSReplyTo()).getQueueName());
      World.same(true, message.getJMSMessageID().startsWith("ID:"));
    }
  }

  static void coreToOpenWire(World world) throws Exception {
    javax.jms.Session core = core(world);
    javax.jms.MessageProducer producer = core.createProducer(core.createQueue(world.name));
    ActiveMQConnection connection = world.connect();
    connection.setTrustAllPackages(true);
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    var text = core.createTextMessage("text é€𝄞");
    text.setStringProperty("string", "é");
    text.setJMSCorrelationID("correlation");
    text.setJMSType("type");
    producer.send(text);
    TextMessage got = (TextMessage) consumer.receive(World.WAIT_MS);
    World.same("text é€𝄞", got.getText());
    World.same("é", got.getStringProperty("string"));
    World.same("correlation", got.getJMSCorrelationID());
    World.same("type", got.getJMSType());
    World.same(text.getJMSMessageID(), got.getJMSMessageID());
    var map = core.createMapMessage();
    map.setInt("int", 1);
    map.setString("string", "s");
    producer.send(map);
    MapMessage gotMap = (MapMessage) consumer.receive(World.WAIT_MS);
    World.same(1, gotMap.getObject("int"));
    World.same("s", gotMap.getObject("string"));
    var object = core.createObjectMessage("an object");
    producer.send(object);
    World.same("an object", ((ObjectMessage) consumer.receive(World.WAIT_MS)).getObject());
    byte[] content = new byte[2_000_000];
    content[content.length - 1] = 5;
    var large = core.createBytesMessage();
    large.writeBytes(content);
    producer.send(large);
    BytesMessage gotLarge = (BytesMessage) consumer.receive(World.WAIT_MS);
    World.same((long) content.length, gotLarge.getBodyLength());
  }

  static void requestsToCore(World world) throws Exception {
    javax.jms.Session core = core(world);
    javax.jms.MessageProducer replies = core.createProducer(null);
    core.createConsumer(core.createQueue(world.name)).setMessageListener(
        request -> {
          try {
            javax.jms.Message answer = core.createTextMessage("re");
            answer.setJMSCorrelationID(request.getJMSCorrelationID());
            replies.send(request.getJMSReplyTo(), answer);
          } catch (Exception failure) {
            failure.printStackTrace();
          }
        });
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    var own = session.createTemporaryQueue();
    MessageConsumer consumer = session.createConsumer(own);
    Message request = session.createTextMessage("1");
    request.setJMSReplyTo(own);
    request.setJMSCorrelationID("c1");
    session.createProducer(session.createQueue(world.name)).send(request);
    Message answer = consumer.receive(World.WAIT_MS);
    World.same("re", World.text(answer));
    World.same("c1", answer.getJMSCorrelationID());
  }

  static void requestsToCoreByMessageId(World world) throws Exception {
    javax.jms.Session core = core(world);
    javax.jms.MessageProducer replies = core.createProducer(null);
    core.createConsumer(core.createQueue(world.name)).setMessageListener(
        request -> {
          try {
            javax.jms.Message answer = core.createTextMessage("re: " + ((javax.jms.TextMessage) request).getText());
            answer.setJMSCorrelationID(request.getJMSMessageID());
            replies.send(request.getJMSReplyTo(), answer);
          } catch (Exception failure) {
            failure.printStackTrace();
          }
        });
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    var shared = session.createQueue(world.name + ".replies");
    MessageProducer producer = session.createProducer(session.createQueue(world.name));
    List<Message> requests = new ArrayList<>();
    for (int at = 0; at < 3; at++) {
      Message request = session.createTextMessage("" + at);
      request.setJMSReplyTo(shared);
      producer.send(request);
      requests.add(request);
    }
    for (int at = 2; at >= 0; at--) {
      String id = requests.get(at).getJMSMessageID();
      MessageConsumer consumer = session.createConsumer(shared, "JMSCorrelationID='" + id + "'");
      Message answer = consumer.receive(World.WAIT_MS);
      World.same("re: " + at, World.text(answer));
      World.same(id, answer.getJMSCorrelationID());
      consumer.close();
    }
  }

  static void nested(World world) throws Exception {
    java.util.Map<String, Object> inner = new java.util.HashMap<>();
    inner.put("int", 1);
    inner.put("list", java.util.Arrays.asList("x", 2L));
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MapMessage map = session.createMapMessage();
    map.setObject("inner", inner);
    map.setObjectProperty("property", inner);
    MessageProducer producer = session.createProducer(session.createQueue(world.name));
    producer.send(map);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    MapMessage found = (MapMessage) consumer.receive(World.WAIT_MS);
    World.same(inner, found.getObject("inner"));
    World.same(inner, found.getObjectProperty("property"));
    consumer.close();
    javax.jms.Session core = core(world);
    producer.send(map);
    var seen = (javax.jms.MapMessage) core.createConsumer(core.createQueue(world.name)).receive(World.WAIT_MS);
    World.same(true, seen.getString("inner").contains("\"list\": [\"x\", 2]"));
    World.same(seen.getString("inner"), seen.getStringProperty("property"));
  }

  static void requestsFromCore(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageProducer replies = session.createProducer(null);
    session.createConsumer(session.createQueue(world.name)).setMessageListener(
        request -> {
          try {
            Message answer = session.createTextMessage("re");
            answer.setJMSCorrelationID(request.getJMSMessageID());
            replies.send(request.getJMSReplyTo(), answer);
          } catch (Exception failure) {
            failure.printStackTrace();
          }
        });
    javax.jms.Session core = core(world);
    var own = core.createTemporaryQueue();
    javax.jms.MessageConsumer consumer = core.createConsumer(own);
    javax.jms.Message request = core.createTextMessage("1");
    request.setJMSReplyTo(own);
    core.createProducer(core.createQueue(world.name)).send(request);
    javax.jms.Message answer = consumer.receive(World.WAIT_MS);
    World.same(true, answer != null);
    World.same(request.getJMSMessageID(), answer.getJMSCorrelationID());
  }
}
