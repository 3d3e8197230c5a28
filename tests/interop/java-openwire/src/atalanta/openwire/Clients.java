package atalanta.openwire;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.transport.DefaultTransportListener;
import org.apache.activemq.transport.failover.FailoverTransport;

/** Groups of connections at work, by commands: one line in, one line of JSON out. */
public final class Clients {
  private static final int OPEN_SECONDS = 60;

  private Clients() {}

  public static void main(String[] arguments) throws Exception {
    Map<String, Group> groups = new ConcurrentHashMap<>();
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      String[] words = line.split("\t");
      String answer;
      try {
        if (words[0].equals("open")) {
          Group group = new Group(words[1], Integer.parseInt(words[4]));
          groups.put(words[1], group);
          group.open(words[2], Integer.parseInt(words[3]));
          answer = "{}";
        } else {
          answer = groups.get(words[1]).answer(words[0]);
        }
      } catch (Exception failure) {
        answer = "{\"failure\": \"" + plain(String.valueOf(failure)) + "\"}";
      }
      System.out.println(answer);
      System.out.flush();
    }
    System.exit(0);
  }

  private static String plain(String text) {
    return text.replace("\\", "/").replace("\"", "'").replaceAll("\\s+", " ");
  }

  /** Connections of one URL; each sends to the queue of the group and consumes from it. A period of 0: they only consume. */
  static final class Group {
    private final String name;
    private final int periodMs;
    private final List<ActiveMQConnection> connections = new ArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool(
        task -> {
          Thread thread = new Thread(task);
          thread.setDaemon(true);
          return thread;
        });
    private final Map<String, Boolean> sent = new ConcurrentHashMap<>();
    private final Map<String, AtomicInteger> received = new ConcurrentHashMap<>();
    private final AtomicInteger interrupted = new AtomicInteger();
    private final List<String> failures = java.util.Collections.synchronizedList(new ArrayList<>());
    private volatile boolean quiet;

    Group(String name, int periodMs) {
      this.name = name;
      this.periodMs = periodMs;
    }

    void open(String url, int count) throws Exception {
      List<Future<?>> opened = new ArrayList<>();
      for (int at = 0; at < count; at++) {
        String id = name + "-" + at;
        ActiveMQConnection connection = (ActiveMQConnection) new ActiveMQConnectionFactory("admin", "admin", url).createConnection();
        connections.add(connection);
        opened.add(threads.submit(
            () -> {
              begin(connection, id);
              return null;
            }));
      }
      for (Future<?> each : opened) {
        each.get(OPEN_SECONDS, TimeUnit.SECONDS);
      }
    }

    private void begin(ActiveMQConnection connection, String id) throws JMSException {
      connection.setClientID(id);
      connection.setExceptionListener(failure -> failures.add(id + ": " + failure));
      connection.addTransportListener(
          new DefaultTransportListener() {
            @Override
            public void transportInterupted() {
              interrupted.incrementAndGet();
            }
          });
      connection.start();
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      session.createConsumer(session.createQueue("clients." + name)).setMessageListener(
          message -> {
            try {
              received.computeIfAbsent(((TextMessage) message).getText(), text -> new AtomicInteger()).incrementAndGet();
            } catch (JMSException failure) {
              failures.add(id + ": " + failure);
            }
          });
      if (periodMs > 0) {
        threads.submit(() -> send(connection, id));
      }
    }

    private void send(ActiveMQConnection connection, String id) {
      try {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue("clients." + name));
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        for (int number = 0; !quiet; number++) {
          String text = id + "/" + number;
          producer.send(session.createTextMessage(text));
          sent.put(text, true);
          Thread.sleep(periodMs);
        }
      } catch (Exception failure) {
        failures.add(id + ": " + failure);
      }
    }

    String answer(String order) throws Exception {
      switch (order) {
        case "where":
          return where();
        case "quiet":
          quiet = true;
          return "{}";
        case "counts":
          return counts();
        case "told":
          return told();
        default:
          quiet = true;
          for (ActiveMQConnection each : connections) {
            threads.submit(
                () -> {
                  each.close();
                  return null;
                });
          }
          return "{}";
      }
    }

    private String where() {
      Map<String, Integer> places = new TreeMap<>();
      for (ActiveMQConnection each : connections) {
        FailoverTransport transport = each.getTransport().narrow(FailoverTransport.class);
        String place = transport == null || transport.getConnectedTransportURI() == null
            ? "" : transport.getConnectedTransportURI().toString().replaceAll("\\?.*", "");
        places.merge(place, 1, Integer::sum);
      }
      StringBuilder text = new StringBuilder();
      places.forEach((place, count) -> text.append(text.isEmpty() ? "" : ", ").append("\"" + place + "\": " + count));
      return "{" + text + "}";
    }

    /** The brokers that the connections were told of, from a field of their transports. */
    private String told() throws Exception {
      java.lang.reflect.Field field = FailoverTransport.class.getDeclaredField("updated");
      field.setAccessible(true);
      Map<String, Integer> found = new TreeMap<>();
      for (ActiveMQConnection each : connections) {
        for (Object uri : (List<?>) field.get(each.getTransport().narrow(FailoverTransport.class))) {
          found.merge(uri.toString(), 1, Integer::sum);
        }
      }
      StringBuilder text = new StringBuilder();
      found.forEach((uri, count) -> text.append(text.isEmpty() ? "" : ", ").append("\"" + uri + "\": " + count));
      return "{" + text + "}";
    }

    private String counts() {
      int lost = 0;
      for (String each : sent.keySet()) {
        lost += received.containsKey(each) ? 0 : 1;
      }
      int doubled = 0;
      for (AtomicInteger each : received.values()) {
        doubled += each.get() - 1;
      }
      return String.format(
          "{\"sent\": %d, \"received\": %d, \"lost\": %d, \"doubled\": %d, \"interrupted\": %d, \"failures\": [%s]}",
          sent.size(), received.size(), lost, doubled, interrupted.get(),
          String.join(", ", failures.stream().map(each -> "\"" + plain(each) + "\"").toList()));
    }
  }
}
