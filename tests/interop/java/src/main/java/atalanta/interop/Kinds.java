package atalanta.interop;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32;

/** Messages of every kind of body, and the line of all that a receiver sees of one. */
final class Kinds {
  private static final String WORD = "säge € 𝄞 ";
  private static final int LONG = 200;
  private static final long HOUR_MS = 3_600_000;

  private Kinds() { }

  /** Sends a message whose body is of `kind` and about `size` long. */
  static void send(Session session, MessageProducer producer, String kind, int number, int size) throws JMSException {
    Message message = body(session, kind, size);
    Driver.typed(message);
    message.setIntProperty("number", number);
    message.setJMSType("type of " + kind);
    message.setJMSCorrelationID("correlated " + number);
    message.setJMSReplyTo(session.createQueue("answers"));
    producer.send(message, DeliveryMode.PERSISTENT, 7, HOUR_MS);
  }

  private static Message body(Session session, String kind, int size) throws JMSException {
    switch (kind) {
      case "text":
        return session.createTextMessage(WORD.repeat(size / WORD.length() + 1));
      case "bytes":
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(pattern(size));
        return bytes;
      case "noise":
        byte[] content = new byte[size];
        new Random(size).nextBytes(content);  // no compression makes it smaller
        BytesMessage noise = session.createBytesMessage();
        noise.writeBytes(content);
        return noise;
      case "map":
        MapMessage map = session.createMapMessage();
        map.setString("string", WORD);
        map.setBoolean("boolean", true);
        map.setByte("byte", (byte) -1);
        map.setShort("short", (short) -2);
        map.setInt("int", -3);
        map.setLong("long", -4);
        map.setFloat("float", 0.5f);
        map.setDouble("double", 0.1);
        map.setChar("char", 'ß');
        map.setBytes("bytes", pattern(size));
        return map;
      case "stream":
        StreamMessage stream = session.createStreamMessage();
        stream.writeString(WORD.repeat(size / WORD.length() + 1));
        stream.writeBoolean(true);
        stream.writeByte((byte) -1);
        stream.writeShort((short) -2);
        stream.writeInt(-3);
        stream.writeLong(-4);
        stream.writeFloat(0.5f);
        stream.writeDouble(0.1);
        stream.writeChar('ß');
        stream.writeString(null);
        return stream;
      case "streamed bytes":
        StreamMessage withBytes = session.createStreamMessage();
        withBytes.writeInt(5);
        withBytes.writeBytes(pattern(size));
        return withBytes;
      case "object":
        ObjectMessage object = session.createObjectMessage();
        object.setObject(new ArrayList<>(List.of(WORD, "x".repeat(size))));
        return object;
      case "empty":
        return session.createMessage();
      default:
        throw new IllegalArgumentException("no kind of body is called " + kind);
    }
  }

  private static byte[] pattern(int size) {
    byte[] bytes = new byte[size];
    for (int i = 0; i < size; i++) {
      bytes[i] = (byte) (i % 251);
    }
    return bytes;
  }

  /** Kind, body, headers and the properties of the sender, separated by "|". */
  static String line(Message message) throws JMSException {
    List<String> properties = new ArrayList<>();
    for (Object each : Collections.list(message.getPropertyNames())) {
      String name = (String) each;
      if (!name.startsWith("JMS_AMQP_") && !name.equals("NATIVE_MESSAGE_ID") && !name.startsWith("_AMQ")) {
        properties.add(name + "=" + value(message.getObjectProperty(name)));
      }
    }
    Collections.sort(properties);
    return String.join("|",
        body(message),
        "type " + message.getJMSType(),
        "correlation " + message.getJMSCorrelationID(),
        "reply to " + message.getJMSReplyTo(),
        "priority " + message.getJMSPriority(),
        "mode " + message.getJMSDeliveryMode(),
        "expires " + (message.getJMSExpiration() - message.getJMSTimestamp() > HOUR_MS - 60_000
            && message.getJMSExpiration() - message.getJMSTimestamp() < HOUR_MS + 60_000),
        "redelivered " + message.getJMSRedelivered(),
        String.join(",", properties));
  }

  private static String body(Message message) throws JMSException {
    if (message instanceof TextMessage text) {
      return "text " + value(text.getText());
    }
    if (message instanceof BytesMessage bytes) {
      byte[] found = new byte[(int) bytes.getBodyLength()];
      bytes.readBytes(found);
      return "bytes " + value(found);
    }
    if (message instanceof MapMessage map) {
      List<String> entries = new ArrayList<>();
      for (Object name : Collections.list(map.getMapNames())) {
        entries.add(name + "=" + value(map.getObject((String) name)));
      }
      Collections.sort(entries);
      return "map " + String.join(",", entries);
    }
    if (message instanceof StreamMessage stream) {
      List<String> entries = new ArrayList<>();
      try {
        while (true) {
          entries.add(value(stream.readObject()));
        }
      } catch (MessageEOFException end) {
        return "stream " + String.join(",", entries);
      }
    }
    if (message instanceof ObjectMessage object) {
      return "object " + value(object.getObject());
    }
    return "empty";
  }

  private static String value(Object value) {
    if (value == null) {
      return "null";
    }
    String text = value instanceof byte[] bytes ? Arrays.toString(bytes) : value.toString();
    if (text.length() > LONG) {
      CRC32 sum = new CRC32();
      sum.update(text.getBytes(java.nio.charset.StandardCharsets.UTF_8));
      text = text.length() + " long, sum " + sum.getValue();
    }
    return value.getClass().getSimpleName() + ":" + text.replace('|', '/').replace('\t', ' ');
  }
}
