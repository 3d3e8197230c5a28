package atalanta.bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.transport.DefaultTransportListener;
import org.apache.activemq.transport.failover.FailoverTransport;

/**
 * Failover clients of activemq-client, a connection each. All consume one queue, and the first ones send to it, a
 * durable message each period. Each line is answered by one line of JSON: {@code where} (connections by port of the
 * broker, "0": not connected), {@code quiet} (nobody sends any more), {@code counts} ("resumed" are all connects).
 *
 * <p>Arguments: url, queue, clients, senders, period in ms.
 */
public final class FailoverClients {
    private static final Map<String, AtomicInteger> RECEIVED = new ConcurrentHashMap<>();
    private static final Map<String, Boolean> SENT = new ConcurrentHashMap<>();
    private static final AtomicInteger RESUMED = new AtomicInteger();
    private static final AtomicInteger FAILURES = new AtomicInteger();
    private static volatile boolean quiet;

    private FailoverClients() {
    }

    public static void main(String[] arguments) throws Exception {
        List<ActiveMQConnection> connections = new ArrayList<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            open(arguments, connections);
            say("{\"ready\": 1}");
        } catch (JMSException problem) {
            say("{\"error\": \"" + problem.toString().replaceAll("[\"\\\\\\n\\r]", " ") + "\"}");
        }
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            switch (line.trim()) {
                case "where" -> say(where(connections));
                case "counts" -> say(counts());
                default -> {
                    quiet = true;
                    say("{}");
                }
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void open(String[] arguments, List<ActiveMQConnection> connections) throws JMSException {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory("admin", "admin", arguments[0]);
        int senders = Integer.parseInt(arguments[3]);
        for (int at = 0; at < Integer.parseInt(arguments[2]); at++) {
            ActiveMQConnection connection = (ActiveMQConnection) factory.createConnection();
            connection.setExceptionListener(FailoverClients::fail);
            connection.addTransportListener(new DefaultTransportListener() {
                @Override
                public void transportResumed() {
                    RESUMED.incrementAndGet();
                }
            });
            connection.start();
            connections.add(connection);
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            session.createConsumer(session.createQueue(arguments[1])).setMessageListener(message -> {
                try {
                    String text = ((TextMessage) message).getText();
                    RECEIVED.computeIfAbsent(text, each -> new AtomicInteger()).incrementAndGet();
                } catch (JMSException problem) {
                    fail(problem);
                }
            });
            if (at < senders) {
                String name = "sender-" + at;
                new Thread(() -> send(connection, arguments[1], name, Long.parseLong(arguments[4])), name).start();
            }
        }
    }

    private static void send(Connection connection, String queue, String name, long periodMs) {
        try {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageProducer producer = session.createProducer(session.createQueue(queue));
            for (int number = 0; !quiet; number++) {
                String text = name + "/" + number;
                producer.send(session.createTextMessage(text));
                SENT.put(text, true);
                Thread.sleep(periodMs);
            }
        } catch (JMSException | InterruptedException problem) {
            fail(problem);
        }
    }

    private static void fail(Exception problem) {
        System.err.println(problem);
        FAILURES.incrementAndGet();
    }

    private static String where(List<ActiveMQConnection> connections) {
        Map<Integer, Integer> places = new TreeMap<>();
        for (ActiveMQConnection each : connections) {
            FailoverTransport transport = each.getTransport().narrow(FailoverTransport.class);
            java.net.URI place = transport == null ? null : transport.getConnectedTransportURI();
            places.merge(place == null ? 0 : place.getPort(), 1, Integer::sum);
        }
        List<String> fields = new ArrayList<>();
        places.forEach((port, count) -> fields.add("\"" + port + "\": " + count));
        return "{" + String.join(", ", fields) + "}";
    }

    private static String counts() {
        long lost = SENT.keySet().stream().filter(each -> !RECEIVED.containsKey(each)).count();
        long doubled = RECEIVED.values().stream().mapToInt(AtomicInteger::get).sum() - RECEIVED.size();
        return String.format("{\"sent\": %d, \"lost\": %d, \"doubled\": %d, \"resumed\": %d, \"failures\": %d}",
                SENT.size(), lost, doubled, RESUMED.get(), FAILURES.get());
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
