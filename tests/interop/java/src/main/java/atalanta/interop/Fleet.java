package atalanta.interop;

import jakarta.jms.CompletionListener;
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
 * Arguments: url-of-connection-i (repeated) "--" user password queue connections pause-ms. With a pause of -1 they are in
 * constant use, each in its own way: blocking sends every 5 to 100 ms, sends that are confirmed later without a pause
 * (they want a url with confirmationWindowSize), transactions that receive and send. Lines on stdin:
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
      if (pauseMs >= 0) {
        fleet.work(connection, queue, "c" + i, pauseMs);
      } else {
        fleet.workWithoutPause(connection, queue, "c" + i, i);
      }
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

  private void workWithoutPause(Connection connection, String queue, String name, int number) throws JMSException {
    switch (number % 10) {
      case 1, 5 -> {
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        connection.start();
        start(name + "-transacts", () -> transact(session, consumer, producer, name));
      }
      case 2 -> {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        start(name + "-streams", () -> stream(session, producer, name));
      }
      case 3 -> work(connection, queue, name, number % 20 == 3 ? 5 : 20);
      case 4, 6, 8 -> work(connection, queue, name, 50);
      default -> work(connection, queue, name, 100);
    }
  }

  private void transact(Session session, MessageConsumer consumer, MessageProducer producer, String name) {
    for (int n = 0; true; n++) {
      List<String> sent = new ArrayList<>();
      List<Message> got = new ArrayList<>();
      boolean done = false;
      try {
        for (Message message = consumer.receive(50); message != null; message = consumer.receiveNoWait()) {
          got.add(message);
          if (got.size() == 10) {
            break;
          }
        }
        for (int i = 0; sending && i < 3; i++) {
          sent.add(name + "/" + n + "." + i);
          producer.send(session.createTextMessage(sent.get(i)));
        }
        session.commit();
        done = true;
      } catch (JMSException failed) {
        System.err.println(java.time.LocalTime.now() + " " + name + ": " + Main.oneLine(failed));
        failures.incrementAndGet();
        rollBack(session);
      }
      try {
        (done ? confirmed : unsure).addAll(sent);
        for (Message message : got) {
          String text = ((TextMessage) message).getText();
          if (!done) {
            unsure.add(text);
          }
          received.merge(text, 1, Integer::sum);
          deliveries.merge(text, message.getIntProperty("JMSXDeliveryCount"), Math::max);
        }
      } catch (JMSException never) {
        throw new IllegalStateException(never);
      }
    }
  }

  private static void rollBack(Session session) {
    try {
      session.rollback();
    } catch (JMSException failed) {
      pause(100);
    }
  }

  private void stream(Session session, MessageProducer producer, String name) {
    for (int n = 0; true; n++) {
      pause(n % 5 == 0 ? 50 : 1);
      if (!sending) {
        continue;
      }
      String text = name + "/" + n;
      try {
        producer.send(session.createTextMessage(text), new CompletionListener() {
          @Override
          public void onCompletion(Message message) {
            confirmed.add(text);
          }

          @Override
          public void onException(Message message, Exception failed) {
            unsure.add(text);
            System.err.println(java.time.LocalTime.now() + " " + text + " later: " + failed.getMessage());
            failures.incrementAndGet();
          }
        });
      } catch (JMSException failed) {
        unsure.add(text);
        System.err.println(java.time.LocalTime.now() + " " + text + ": " + Main.oneLine(failed));
        failures.incrementAndGet();
      }
    }
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
