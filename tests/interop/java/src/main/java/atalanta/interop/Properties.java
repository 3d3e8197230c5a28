package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** Application properties keep their Java types. */
final class Properties {
  private Properties() { }

  @Scenario
  static void everyType(World world) throws Exception {
    Session session = world.session();
    Message message = session.createMessage();
    message.setBooleanProperty("boolean", true);
    message.setByteProperty("byte", (byte) -1);
    message.setShortProperty("short", (short) -2);
    message.setIntProperty("int", -3);
    message.setLongProperty("long", -4L);
    message.setFloatProperty("float", 0.5f);
    message.setDoubleProperty("double", 0.1);
    message.setStringProperty("string", "ß\ud83d\ude80");
    message.setStringProperty("null", null);
    Message got = world.round(session, message);
    equal(Boolean.TRUE, got.getObjectProperty("boolean"), "boolean");
    equal((byte) -1, got.getObjectProperty("byte"), "byte");
    equal((short) -2, got.getObjectProperty("short"), "short");
    equal(-3, got.getObjectProperty("int"), "int");
    equal(-4L, got.getObjectProperty("long"), "long");
    equal(0.5f, got.getObjectProperty("float"), "float");
    equal(0.1, got.getObjectProperty("double"), "double");
    equal("ß\ud83d\ude80", got.getObjectProperty("string"), "string");
    check(got.propertyExists("null"), "the null property is there");
    equal(null, got.getObjectProperty("null"), "null");
    Set<String> names = new TreeSet<>(Collections.list((java.util.Enumeration<String>) got.getPropertyNames()));
    check(names.containsAll(List.of("boolean", "byte", "double", "float", "int", "long", "null", "short", "string")), "names: " + names);
  }

  @Scenario
  static void conversions(World world) throws Exception {
    Session session = world.session();
    Message message = session.createMessage();
    message.setIntProperty("int", 12);
    message.setStringProperty("digits", "34");
    Message got = world.round(session, message);
    equal("12", got.getStringProperty("int"), "int as string");
    equal(12L, got.getLongProperty("int"), "int as long");
    equal(34, got.getIntProperty("digits"), "string as int");
    World.refused(MessageFormatException.class, () -> got.getByteProperty("int"));
  }

  @Scenario
  static void extremes(World world) throws Exception {
    Session session = world.session();
    Message message = session.createMessage();
    message.setLongProperty("most", Long.MAX_VALUE);
    message.setDoubleProperty("nan", Double.NaN);
    message.setDoubleProperty("infinite", Double.NEGATIVE_INFINITY);
    message.setDoubleProperty("tiny", Double.MIN_VALUE);
    message.setStringProperty("long", "ö".repeat(6000));
    message.setStringProperty("empty", "");
    Message got = world.round(session, message);
    equal(Long.MAX_VALUE, got.getLongProperty("most"), "most");
    check(Double.isNaN(got.getDoubleProperty("nan")), "NaN");
    equal(Double.NEGATIVE_INFINITY, got.getDoubleProperty("infinite"), "infinite");
    equal(Double.MIN_VALUE, got.getDoubleProperty("tiny"), "tiny");
    equal("ö".repeat(6000), got.getStringProperty("long"), "long");
    equal("", got.getStringProperty("empty"), "empty");
  }

  @Scenario
  static void manyOfThem(World world) throws Exception {
    Session session = world.session();
    TextMessage message = session.createTextMessage("many");
    for (int i = 0; i < 300; i++) {
      message.setIntProperty("größe_" + i, i);
    }
    TextMessage got = world.round(session, message);
    for (int i = 0; i < 300; i++) {
      equal(i, got.getIntProperty("größe_" + i), "property " + i);
    }
  }
}
