package atalanta.openwire;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TransactionRolledBackException;

/** A failover client over restarts of its broker: it says when it wants one, and waits for a line. */
final class Restart {
  static final int MESSAGES = 600;
  static final int BATCH = 5;

  private Restart() {}

  static void failover(World world) throws Exception {
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    Session sending = world.session(Session.AUTO_ACKNOWLEDGE);
    Session session = world.session(Session.CLIENT_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    AtomicInteger sent = new AtomicInteger();
    Thread sender = new Thread(
        () -> {
          try {
            MessageProducer producer = sending.createProducer(sending.createQueue(world.name));
            for (int at = 0; at < MESSAGES; at++) {
              producer.send(sending.createTextMessage("" + at));
              sent.set(at + 1);
              Thread.sleep(2);
            }
          } catch (Exception failure) {
            failure.printStackTrace();
          }
        });
    sender.start();
    while (sent.get() < MESSAGES / 4) {
      Thread.sleep(10);
    }
    System.out.println("{\"restart\": true}");
    System.out.flush();
    orders.readLine();
    Set<String> found = new LinkedHashSet<>();
    int copies = 0;
    while (found.size() < MESSAGES) {
      Message message = consumer.receive(20_000);
      World.same(true, message != null);
      if (!found.add(World.text(message))) {
        World.same(true, message.getJMSRedelivered());
        copies++;
      }
      message.acknowledge();
    }
    sender.join();
    World.nothing(consumer);
    World.same(MESSAGES, found.size());
    World.same(true, copies <= 5);
  }

  /** Batches in transactions: one whose commit is rolled back is sent again, under new ids. */
  static void failoverTransacted(World world) throws Exception {
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    Session sending = world.session(Session.SESSION_TRANSACTED);
    Session session = world.session(Session.SESSION_TRANSACTED);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    AtomicInteger sent = new AtomicInteger();
    AtomicInteger repeated = new AtomicInteger();
    Thread sender = new Thread(
        () -> {
          try {
            MessageProducer producer = sending.createProducer(sending.createQueue(world.name));
            while (sent.get() < MESSAGES) {
              try {
                for (int at = 0; at < BATCH; at++) {
                  producer.send(sending.createTextMessage("" + (sent.get() + at)));
                }
                sending.commit();
                sent.addAndGet(BATCH);
                Thread.sleep(10);
              } catch (TransactionRolledBackException again) {
                repeated.incrementAndGet();
              }
            }
          } catch (Exception failure) {
            failure.printStackTrace();
          }
        });
    sender.start();
    Set<String> found = new LinkedHashSet<>();
    Set<String> open = new LinkedHashSet<>();
    int copies = 0;
    boolean restarted = false;
    while (found.size() < MESSAGES) {
      if (!restarted && found.size() >= MESSAGES / 4) {
        restarted = true;
        System.out.println("{\"restart\": true}");
        System.out.flush();
        orders.readLine();
      }
      Message message = consumer.receive(20_000);
      World.same(true, message != null);
      open.add(World.text(message));
      if (open.size() < BATCH) {
        continue;
      }
      try {
        session.commit();
        for (String text : open) {
          copies += found.add(text) ? 0 : 1;
        }
      } catch (TransactionRolledBackException again) {
        repeated.incrementAndGet();
      }
      open.clear();
    }
    sender.join();
    World.same(MESSAGES, found.size());
    World.same(true, copies <= BATCH * repeated.get());
  }
}
