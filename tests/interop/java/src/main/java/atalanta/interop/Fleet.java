package atalanta.interop;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/**
 * Many JMS connections that send durable messages to one queue and consume from it, while their brokers come and go.
 * Arguments: url-of-connection-i (repeated) "--" user password queue connections pause-ms. Lines on stdin:
 *
 *   quiet     nobody sends any more
 *   counts    confirmed, unsure (the call failed), received, lost, repeated (more than twice, or delivered more than
 *             twice, and sent without a failure), failed calls in all, exceptions of consumers
 *   end
 */
final class Fleet {
  private final Set<String> confirmed = ConcurrentHashMap.newKeySet();
  private final Set<String> unsure = ConcurrentHashMap.newKeySet();
  private final Map<String, Integer> received = new ConcurrentHashMap<>();
  private final Map<String, Integer> deliveries = new ConcurrentHashMap<>();
  private final AtomicInteger failures = new AtomicInteger();
  private final AtomicInteger consumerFailures = new AtomicInteger();
  private volatile boolean sending = true;

  private Fleet() { }

  public static void main(String[] arguments) throws Exception {
    List<String> urls = new ArrayList<>();
    int next = 0;
    while (!arguments[next].equals("--")) {
      urls.add(arguments[next++]);
    }
    String user = arguments[++next];
    String password = arguments[++next];
    String queue = arguments[++next];
    int connections = Integer.parseInt(arguments[++next]);
    long pauseMs = Long.parseLong(arguments[++next]);
    Fleet fleet = new Fleet();
    for (int i = 0; i < connections; i++) {
      Connection connection = new ActiveMQConnectionFactory(urls.get(i % urls.size())).createConnection(user, password);
      fleet.work(connection, queue, "c" + i, pauseMs);
    }
    System.out.println("ready");
    System.out.flush();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null && !line.equals("end"); line = in.readLine()) {
      if (line.equals("quiet")) {
        fleet.sending = false;
        System.out.println("quiet");
      } else {
        System.out.println(fleet.counts());
      }
      System.out.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private void work(Connection connection, String queue, String name, long pauseMs) throws JMSException {
    Session receiving = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageConsumer consumer = receiving.createConsumer(receiving.createQueue(queue));
    Session sendingSession = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = sendingSession.createProducer(sendingSession.createQueue(queue));
    connection.start();
    start(name + "-receives", () -> receive(consumer));
    start(name + "-sends", () -> send(sendingSession, producer, name, pauseMs));
  }

  private static void start(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }

  private void receive(MessageConsumer consumer) {
    while (true) {
      try {
        TextMessage message = (TextMessage) consumer.receive(1_000);
        if (message != null) {
          received.merge(message.getText(), 1, Integer::sum);
          deliveries.merge(message.getText(), message.getIntProperty("JMSXDeliveryCount"), Math::max);
        }
      } catch (JMSException failed) {
        consumerFailures.incrementAndGet();
        pause(100);
      }
    }
  }

  private void send(Session session, MessageProducer producer, String name, long pauseMs) {
    for (int n = 0; true; n++) {
      pause(pauseMs);
      if (!sending) {
        continue;
      }
      String text = name + "/" + n;
      try {
        Message message = session.createTextMessage(text);
        producer.send(message);
        confirmed.add(text);
      } catch (JMSException failed) {
        unsure.add(text);
        System.err.println(java.time.LocalTime.now() + " " + text + ": " + Main.oneLine(failed));
        failures.incrementAndGet();
      }
    }
  }

  private static void pause(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException never) {
      throw new IllegalStateException(never);
    }
  }

  private String counts() {
    long lost = confirmed.stream().filter(text -> !received.containsKey(text)).count();
    long repeated = received.entrySet().stream().filter(e -> !unsure.contains(e.getKey()))
        .filter(e -> e.getValue() > 2 || deliveries.get(e.getKey()) > 2).count();
    return confirmed.size() + "\t" + unsure.size() + "\t" + received.size() + "\t" + lost + "\t" + repeated + "\t"
        + failures.get() + "\t" + consumerFailures.get();
  }
}
