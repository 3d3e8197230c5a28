package atalanta.bench;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * Producers and consumers, a connection each; number i uses queue i modulo the number of queues.
 *
 * <p>Options: url, consumerUrl (another node), user, password, queue (a prefix), queues, producers, consumers, bytes,
 * text (a TextMessage of as many characters), durable, blocking (every send waits for the broker), backlog (messages
 * sent and not yet received, in all), settleMs (between consumers and producers: the nodes of a cluster tell each other
 * of consumers).
 */
final class Load {
    private static final long PAUSE_NS = 50_000;
    private static final long DRAIN_MS = 5_000;

    private final Map<String, String> options;
    private final List<Connection> connections = new ArrayList<>();
    private final List<Thread> senders = new ArrayList<>();
    private final LongAdder sent = new LongAdder();
    private final LongAdder received = new LongAdder();
    private final LongAdder errors = new LongAdder();
    private volatile boolean stopping;

    Load(Map<String, String> options) {
        this.options = options;
    }

    void start() throws JMSException, InterruptedException {
        String url = options.get("url");
        for (int i = 0; i < number("consumers", 1); i++) {
            consume(connect(options.getOrDefault("consumerUrl", url)), queue(i));
        }
        Thread.sleep(number("settleMs", 0));
        for (int i = 0; i < number("producers", 1); i++) {
            produce(connect(url), queue(i));
        }
        senders.forEach(Thread::start);
    }

    String counts() {
        return String.format("{\"sent\": %d, \"received\": %d, \"bad\": %d, \"at_ns\": %d}",
                sent.sum(), received.sum(), errors.sum(), System.nanoTime());
    }

    /** Ends sending, waits until all has arrived, but not for ever, and closes. */
    void stop() throws Exception {
        stopping = true;
        for (Thread sender : senders) {
            sender.join();
        }
        long end = System.currentTimeMillis() + DRAIN_MS;
        while (number("consumers", 1) > 0 && received.sum() < sent.sum() && System.currentTimeMillis() < end) {
            Thread.sleep(10);
        }
        for (Connection connection : connections) {
            connection.close();
        }
    }

    private Connection connect(String url) throws JMSException {
        Connection connection = Factory.of(url, flag("durable"), flag("blocking")).createConnection(
                options.getOrDefault("user", "admin"), options.getOrDefault("password", "admin"));
        connections.add(connection);
        connection.start();
        return connection;
    }

    private void consume(Connection connection, String queue) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        consumer.setMessageListener(message -> received.increment());
    }

    private void produce(Connection connection, String queue) throws JMSException {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        producer.setDeliveryMode(flag("durable") ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        senders.add(new Thread(() -> send(session, producer), "producer of " + queue));
    }

    private void send(Session session, MessageProducer producer) {
        byte[] body = new byte[number("bytes", 1024)];
        String text = flag("text") ? "x".repeat(body.length) : null;
        long backlog = number("backlog", 10_000);
        boolean bounded = number("consumers", 1) > 0;
        try {
            for (int i = 0; !stopping; i++) {
                // Adding the counters up is not free: every 16th message is often enough.
                while (bounded && (i & 15) == 0 && !stopping && sent.sum() - received.sum() > backlog) {
                    LockSupport.parkNanos(PAUSE_NS);
                }
                producer.send(text == null ? bytes(session, body) : session.createTextMessage(text));
                sent.increment();
            }
        } catch (JMSException problem) {
            errors.increment();
            System.err.println(problem);
        }
    }

    private static Message bytes(Session session, byte[] body) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(body);
        return message;
    }

    private String queue(int number) {
        return options.getOrDefault("queue", "bench.q") + number % number("queues", 1);
    }

    private int number(String name, int otherwise) {
        return Integer.parseInt(options.getOrDefault(name, Integer.toString(otherwise)));
    }

    private boolean flag(String name) {
        return Boolean.parseBoolean(options.getOrDefault(name, "false"));
    }
}
