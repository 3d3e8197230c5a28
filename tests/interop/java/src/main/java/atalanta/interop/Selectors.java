package atalanta.interop;

import static atalanta.interop.World.equal;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Which messages a selector lets through. Most are asked by a browser, so that one set of messages serves all. */
final class Selectors {
  private Selectors() { }

  /** Five messages a…e; "e" has none of the properties. */
  private static Queue filled(World world, Session session) throws JMSException {
    Queue queue = session.createQueue(world.name("q"));
    MessageProducer producer = session.createProducer(queue);
    String[] colours = {"red", "rose", "blue", "it's 5%_"};
    for (int i = 0; i < 4; i++) {
      Message message = session.createTextMessage("abcd".substring(i, i + 1));
      message.setStringProperty("colour", colours[i]);
      message.setIntProperty("n", i + 1);
      message.setDoubleProperty("weight", (i + 1) * 1.5);
      message.setBooleanProperty("heavy", i >= 2);
      message.setLongProperty("long", (i + 1) * 10_000_000_000L);
      message.setJMSType(i % 2 == 0 ? "even" : "odd");
      message.setJMSCorrelationID("c" + i);
      producer.send(message, i == 0 ? DeliveryMode.NON_PERSISTENT : DeliveryMode.PERSISTENT, 4, 0);
    }
    producer.send(session.createTextMessage("e"), DeliveryMode.PERSISTENT, 2, 0);
    return queue;
  }

  private static void table(World world, String... rows) throws JMSException {
    Session session = world.session();
    Queue queue = filled(world, session);
    List<String> wrong = new ArrayList<>();
    for (int i = 0; i < rows.length; i += 2) {
      StringBuilder got = new StringBuilder();
      QueueBrowser browser = session.createBrowser(queue, rows[i]);
      for (Object message : Collections.list(browser.getEnumeration())) {
        got.append(World.text((Message) message));
      }
      browser.close();
      if (!got.toString().equals(rows[i + 1])) {
        wrong.add("[" + rows[i] + "] gave '" + got + "', not '" + rows[i + 1] + "'");
      }
    }
    equal(List.of(), wrong, "wrong selections");
  }

  @Scenario
  static void comparisons(World world) throws Exception {
    table(world, "colour = 'red'", "a", "colour <> 'red'", "bcd", "n > 2", "cd", "n >= 2", "bcd", "n < 2", "a", "n <= 2", "ab",
        "weight = 3.0", "b", "weight > 2", "bcd", "n = 2.0", "b", "long > 15000000000", "bcd", "heavy = TRUE", "cd", "heavy = false", "ab",
        "heavy", "cd", "NOT heavy", "ab", "2 < n", "cd", "colour = 'it''s 5%_'", "d", "n = -1", "", "weight >= 4.5e0", "cd");
  }

  @Scenario
  static void logic(World world) throws Exception {
    table(world, "n = 1 OR n = 2 AND heavy", "a", "(n = 1 OR n = 2) AND NOT heavy", "ab", "NOT (n = 1)", "bcd", "not (n = 1) and not (n = 2)", "cd",
        "n = 1 or missing = 3", "a", "missing = 3 AND n = 1", "", "NOT (missing = 3)", "", "TRUE", "abcde", "FALSE", "");
  }

  @Scenario
  static void inLikeBetweenNull(World world) throws Exception {
    table(world, "colour IN ('red', 'blue')", "ac", "colour NOT IN ('red', 'blue')", "bd", "colour LIKE 'r%'", "ab", "colour LIKE 'r_d'", "a",
        "colour LIKE '%e'", "bc", "colour NOT LIKE 'r%'", "cd", "colour LIKE '%!%!_' ESCAPE '!'", "d", "n BETWEEN 2 AND 3", "bc",
        "n NOT BETWEEN 2 AND 3", "ad", "weight BETWEEN 1.5 AND 3", "ab", "colour IS NULL", "e", "colour IS NOT NULL", "abcd", "missing IS NULL", "abcde");
  }

  @Scenario
  static void arithmetic(World world) throws Exception {
    table(world, "n + 1 = 3", "b", "n * 2 > 5", "cd", "n - 1 = 0", "a", "weight / 1.5 = 2", "b", "-n < -3", "d", "n + 2 * 3 = 8", "b", "(n + 2) * 3 = 12", "b");
  }

  @Scenario
  static void headers(World world) throws Exception {
    table(world, "JMSPriority = 4", "abcd", "JMSPriority < 4", "e", "JMSType = 'even'", "ac", "JMSType IN ('odd')", "bd", "JMSCorrelationID = 'c2'", "c",
        "JMSDeliveryMode = 'NON_PERSISTENT'", "a", "JMSTimestamp > 0", "abcde", "JMSType IS NULL", "e");
  }

  @Scenario
  static void consumerTakesOnlyWhatItSelects(World world) throws Exception {
    Session session = world.session();
    Queue queue = filled(world, session);
    MessageConsumer heavy = world.session().createConsumer(queue, "heavy");
    World.texts(heavy, "c", "d");
    World.nothing(heavy);
    World.texts(world.session().createConsumer(queue), "a", "b", "e");
  }

  @Scenario
  static void twoConsumersDivideByColour(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageConsumer red = world.session().createConsumer(queue, "colour = 'red'");
    MessageConsumer blue = world.session().createConsumer(queue, "colour = 'blue'");
    MessageProducer producer = session.createProducer(queue);
    for (int i = 0; i < 20; i++) {
      Message message = session.createTextMessage((i % 2 == 0 ? "red" : "blue") + i);
      message.setStringProperty("colour", i % 2 == 0 ? "red" : "blue");
      producer.send(message);
    }
    for (int i = 0; i < 20; i += 2) {
      World.texts(red, "red" + i);
      World.texts(blue, "blue" + (i + 1));
    }
  }

  @Scenario
  static void matchBehindManyThatDoNot(World world) throws Exception {
    Session session = world.connect("blockOnDurableSend=false").createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = session.createQueue(world.name("q"));
    MessageProducer producer = session.createProducer(queue);
    for (int i = 0; i < 2000; i++) {
      Message message = session.createTextMessage("m" + i);
      message.setIntProperty("n", i);
      producer.send(message);
    }
    World.texts(world.session().createConsumer(queue, "n = 1999"), "m1999");
    World.texts(world.session().createConsumer(queue, "n = 1000"), "m1000");
    World.texts(world.session().createConsumer(queue), "m0", "m1");
  }

  @Scenario
  static void documentsByXPath(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageConsumer red = world.session().createConsumer(queue, "XPATH '/car[colour=\"red\"]/doors'");
    MessageConsumer others = world.session().createConsumer(queue, "n >= 0 AND NOT XPATH '//colour'");
    MessageProducer producer = session.createProducer(queue);
    String[] bodies = {
      "<car><colour>red</colour><doors/></car>", "red", "<car><colour>blue</colour><doors/></car>", "<car>",
      "<?xml version='1.0' encoding='UTF-16'?>\n<!-- ü --><car><colour>r<!-- -->ed</colour><doors n='4'>ü</doors></car>",
    };
    for (int i = 0; i < bodies.length; i++) {
      Message message = session.createTextMessage(bodies[i]);
      message.setIntProperty("n", i);
      producer.send(message);
    }
    BytesMessage bytes = session.createBytesMessage();
    bytes.writeBytes(bodies[0].getBytes(StandardCharsets.UTF_8));
    producer.send(bytes);
    World.texts(red, bodies[0], bodies[4]);
    World.texts(others, bodies[1], bodies[3]);
    World.texts(session.createConsumer(queue, "XPATH '//colour'"), bodies[2]);
    equal(true, session.createConsumer(queue).receive(5000) instanceof BytesMessage, "a message of bytes is left");
    World.refused(InvalidSelectorException.class, () -> session.createConsumer(queue, "XPATH '//car['"));
  }

  @Scenario
  static void compressedDocumentsMatchAndLargeOnesDoNot(World world) throws Exception {
    Session session = world.connect("compressLargeMessage=true&minLargeMessageSize=2000")
        .createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = session.createQueue(world.name("q"));
    MessageProducer producer = session.createProducer(queue);
    String compressed = "<car>" + " ".repeat(5_000) + "</car>";
    producer.send(session.createTextMessage(compressed));
    Session plain = world.session();
    String large = "<car>" + " ".repeat(200_000) + "</car>";
    plain.createProducer(queue).send(plain.createTextMessage(large));
    MessageConsumer cars = world.session().createConsumer(queue, "XPATH '/car'");
    World.texts(cars, compressed);
    equal(null, cars.receive(500), "a second document");
    cars.close();
    World.texts(session.createConsumer(queue), large);
  }

  @Scenario
  static void nonsenseIsRefused(World world) throws Exception {
    Session session = world.session();
    Queue queue = filled(world, session);
    World.refused(InvalidSelectorException.class, () -> session.createConsumer(queue, "n = = 3"));
    World.refused(InvalidSelectorException.class, () -> session.createConsumer(queue, "colour LIKE"));
    World.texts(session.createConsumer(queue, "n = 1"), "a");
  }
}
