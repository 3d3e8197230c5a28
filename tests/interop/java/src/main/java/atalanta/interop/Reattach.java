package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/**
 * Sockets that break under a client with a confirmation window: its sessions go on, nothing lost, nothing twice.
 * (Artemis 2.44 itself now and then delivers a message again in the first of these.)
 */
final class Reattach {
  private Reattach() { }

  /** Forwards connections to the broker, and breaks them on demand in the middle of whatever is on its way. */
  private static final class Cutter implements Closeable {
    private final ServerSocket door = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
    private final List<Socket> open = new ArrayList<>();
    private final String host;
    private final int port;

    Cutter(String url) throws IOException {
      URI target = URI.create(url.replaceAll("\\?.*", ""));
      host = target.getHost();
      port = target.getPort();
      start(this::accept);
    }

    String url() {
      return "tcp://127.0.0.1:" + door.getLocalPort();
    }

    private static void start(Runnable work) {
      Thread thread = new Thread(work);
      thread.setDaemon(true);
      thread.start();
    }

    private void accept() {
      try {
        while (true) {
          Socket near = door.accept();
          Socket far = new Socket(host, port);
          synchronized (open) {
            open.add(near);
            open.add(far);
          }
          start(() -> pump(near, far));
          start(() -> pump(far, near));
        }
      } catch (IOException closed) {
        // the scenario is over
      }
    }

    private static void pump(Socket from, Socket to) {
      byte[] buffer = new byte[4096];
      try {
        InputStream in = from.getInputStream();
        OutputStream out = to.getOutputStream();
        for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
          out.write(buffer, 0, n);
        }
      } catch (IOException broken) {
        // both ends hear of it below
      }
      close(from);
      close(to);
    }

    private static void close(Socket socket) {
      try {
        socket.close();
      } catch (IOException ignored) {
        // it is closed
      }
    }

    int cut() {
      synchronized (open) {
        int count = open.size();
        open.forEach(Cutter::close);
        open.clear();
        return count;
      }
    }

    @Override
    public void close() throws IOException {
      door.close();
      cut();
    }
  }

  private static Connection connect(World world, Cutter cutter, String more) throws Exception {
    ActiveMQConnectionFactory factory = world.kept(new ActiveMQConnectionFactory(cutter.url()
        + "?confirmationWindowSize=20000&reconnectAttempts=-1&retryInterval=20&useTopologyForLoadBalancing=false&callTimeout=10000" + more));
    Connection connection = world.kept(factory.createConnection(world.user, world.password));
    connection.start();
    return connection;
  }

  @Scenario
  static void brokenSocketsLoseAndDoubleNothing(World world) throws Exception {
    Cutter cutter = world.kept(new Cutter(world.url));
    int count = 400;
    Session receiving = connect(world, cutter, "&consumerWindowSize=3000").createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = receiving.createQueue(world.name("q"));
    MessageConsumer consumer = receiving.createConsumer(queue);
    Session sending = connect(world, cutter, "").createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = sending.createProducer(queue);
    AtomicReference<Throwable> failure = new AtomicReference<>();
    Thread sender = new Thread(() -> {
      try {
        for (int i = 0; i < count; i++) {
          producer.send(sending.createTextMessage(i + "x".repeat(i % 500)));
        }
      } catch (Throwable thrown) {
        failure.set(thrown);
      }
    });
    sender.start();
    int cuts = 0;
    for (int i = 0; i < count; i++) {
      Message message = World.arrives(consumer);
      equal(i + "x".repeat(i % 500), World.text(message), "text " + i);
      check(!message.getJMSRedelivered(), "redelivered: " + i);
      if (i % 80 == 40) {
        cuts += cutter.cut() > 0 ? 1 : 0;
      }
    }
    sender.join(World.ARRIVES_MS);
    check(failure.get() == null, "the sender failed: " + failure.get());
    check(cuts >= 4, "sockets were broken " + cuts + " times");
    World.nothing(consumer);
  }

  @Scenario
  static void transactionsGoOnAfterABrokenSocket(World world) throws Exception {
    Cutter cutter = world.kept(new Cutter(world.url));
    Session session = connect(world, cutter, "").createSession(true, Session.SESSION_TRANSACTED);
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(session, queue, "1", "2");
    cutter.cut();
    World.sendTexts(session, queue, "3");
    session.commit();
    MessageConsumer consumer = session.createConsumer(queue);
    World.texts(consumer, "1", "2");
    cutter.cut();
    World.texts(consumer, "3");
    cutter.cut();
    session.commit();
    consumer.close();
    World.nothing(world.session().createConsumer(queue));
  }

  @Scenario
  static void aTemporaryQueueOutlivesItsSocket(World world) throws Exception {
    Cutter cutter = world.kept(new Cutter(world.url));
    Session session = connect(world, cutter, "").createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue temporary = session.createTemporaryQueue();
    MessageConsumer consumer = session.createConsumer(temporary);
    World.sendTexts(world.session(), temporary, "before");
    World.texts(consumer, "before");
    cutter.cut();
    World.sendTexts(world.session(), temporary, "after");
    World.texts(consumer, "after");
  }
}
