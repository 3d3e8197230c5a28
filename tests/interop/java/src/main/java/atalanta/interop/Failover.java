package atalanta.interop;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.TransactionRolledBackException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.activemq.artemis.api.core.ActiveMQDuplicateIdException;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/**
 * JMS clients that use duplicate ids as Artemis' manual tells: whatever fails is sent again with the same id, until it is
 * confirmed. Arguments: url user password queue pairs pause-ms. Of each pair the one sends and the other one receives, on
 * connections of their own: every second pair in transactions, the others one by one. Lines on stdin:
 *
 *   quiet     nobody begins a new message any more; answered when all that was begun is confirmed
 *   pause     nobody begins a new message until "go"; answered when all that was begun is confirmed
 *   go        ends the pause
 *   counts    confirmed, lost (confirmed, and every delivery of it was surely rolled back), doubled (delivered again after
 *             its acknowledgement or its commit was confirmed), rolled back (transactions that the client was told so),
 *             failed (other calls of senders and receivers)
 */
final class Failover {
  private static final int SENDS_OF_A_TRANSACTION = 3;

  /** One message that the application got; when the broker confirmed that it is taken, and whether it surely is not. */
  private static final class Delivery {
    final long beganNs = System.nanoTime();
    volatile long takenNs = Long.MAX_VALUE;
    volatile boolean rolledBack;
  }

  private final Set<String> confirmed = ConcurrentHashMap.newKeySet();
  private final Map<String, Queue<Delivery>> received = new ConcurrentHashMap<>();
  private final AtomicInteger rolledBack = new AtomicInteger();
  private final AtomicInteger failed = new AtomicInteger();
  private final List<Thread> senders = new ArrayList<>();
  private final ActiveMQConnectionFactory factory;
  private final String user;
  private final String password;
  private final String queue;
  private volatile boolean sending = true;
  private volatile boolean paused;
  private final AtomicInteger begun = new AtomicInteger();

  private Failover(String[] arguments) {
    factory = new ActiveMQConnectionFactory(arguments[0]);
    factory.setBlockOnAcknowledge(true);
    user = arguments[1];
    password = arguments[2];
    queue = arguments[3];
  }

  public static void main(String[] arguments) throws Exception {
    Failover failover = new Failover(arguments);
    for (int i = 0; i < Integer.parseInt(arguments[4]); i++) {
      failover.pair("c" + i, i % 2 == 1, Long.parseLong(arguments[5]));
    }
    System.out.println("ready");
    System.out.flush();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      if (line.equals("pause") || line.equals("go")) {
        failover.paused = line.equals("pause");
        while (failover.paused && failover.begun.get() > 0) {
          pause(10);
        }
      }
      if (line.equals("quiet")) {
        failover.sending = false;
        for (Thread sender : failover.senders) {
          sender.join();
        }
      }
      System.out.println(failover.counts());
      System.out.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private void pair(String name, boolean transacted, long pauseMs) throws JMSException {
    Session sends = session(transacted);
    MessageProducer producer = sends.createProducer(sends.createQueue(queue));
    Session receives = session(transacted);
    MessageConsumer consumer = receives.createConsumer(receives.createQueue(queue));
    senders.add(start(name + "-sends", () -> send(sends, producer, name, transacted ? SENDS_OF_A_TRANSACTION : 1, pauseMs)));
    start(name + "-receives", () -> receive(receives, consumer, transacted));
  }

  private Session session(boolean transacted) throws JMSException {
    Connection connection = factory.createConnection(user, password);
    connection.start();
    return connection.createSession(transacted, transacted ? Session.SESSION_TRANSACTED : Session.CLIENT_ACKNOWLEDGE);
  }

  private static Thread start(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private void send(Session session, MessageProducer producer, String name, int count, long pauseMs) {
    for (int n = 0; sending; n++) {
      List<String> texts = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        texts.add(name + "/" + n + "." + i);
      }
      begun.incrementAndGet();
      while (paused) {
        begun.decrementAndGet();
        pause(10);
        begun.incrementAndGet();
      }
      while (!sent(session, producer, texts)) {
        pause(50);
      }
      confirmed.addAll(texts);
      begun.decrementAndGet();
      pause(pauseMs);
    }
  }

  private boolean sent(Session session, MessageProducer producer, List<String> texts) {
    try {
      for (String text : texts) {
        Message message = session.createTextMessage(text);
        message.setStringProperty("_AMQ_DUPL_ID", text);
        producer.send(message);
      }
      if (session.getTransacted()) {
        session.commit();
      }
      return true;
    } catch (JMSException error) {
      // A transaction that was committed, though the answer got lost, is refused as a whole when it is repeated.
      return !note(session, error) && error.getCause() instanceof ActiveMQDuplicateIdException;
    }
  }

  private void receive(Session session, MessageConsumer consumer, boolean transacted) {
    while (true) {
      Delivery delivery = null;
      try {
        Message message = consumer.receive(500);
        if (message == null) {
          continue;
        }
        delivery = new Delivery();
        received.computeIfAbsent(((TextMessage) message).getText(), text -> new ConcurrentLinkedQueue<>()).add(delivery);
        if (transacted) {
          session.commit();
        } else {
          message.acknowledge();
        }
        delivery.takenNs = System.nanoTime();
      } catch (JMSException error) {
        boolean told = note(session, error);
        if (delivery != null) {
          delivery.rolledBack = told;
        }
      }
    }
  }

  /** Returns whether the client was told that its transaction was rolled back. */
  private boolean note(Session session, JMSException error) {
    boolean told = error instanceof TransactionRolledBackException;
    (told ? rolledBack : failed).incrementAndGet();
    System.err.println(LocalTime.now() + " " + Thread.currentThread().getName() + ": " + Main.oneLine(error));
    try {
      if (session.getTransacted()) {
        session.rollback();
      }
    } catch (JMSException again) {
      pause(50);
    }
    return told;
  }

  private static void pause(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException never) {
      throw new IllegalStateException(never);
    }
  }

  private String counts() {
    long lost = confirmed.stream().filter(text ->
        received.getOrDefault(text, new ConcurrentLinkedQueue<>()).stream().allMatch(each -> each.rolledBack)).count();
    long doubled = received.entrySet().stream().filter(each -> reported(each.getKey(), isDoubled(each.getValue()))).count();
    return confirmed.size() + "\t" + lost + "\t" + doubled + "\t" + rolledBack.get() + "\t" + failed.get();
  }

  private boolean reported(String text, boolean doubled) {
    if (doubled) {
      System.err.println(LocalTime.now() + " " + text + " is doubled");
    }
    return doubled;
  }

  private static boolean isDoubled(Queue<Delivery> deliveries) {
    return deliveries.stream().anyMatch(one -> deliveries.stream().anyMatch(other -> other != one && other.beganNs > one.takenNs));
  }
}
