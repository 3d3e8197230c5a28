package atalanta.bench;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/**
 * One sender of durable messages, each waited for, over the failovers of a pair. A send that fails is repeated with
 * the same duplicate id, as the documentation of Artemis tells applications to do. Each confirmation is a line with
 * its number and System.nanoTime(). The end of standard input ends the program.
 *
 * <p>Arguments: url, queue.
 */
public final class Failover {
    private Failover() {
    }

    public static void main(String[] arguments) throws Exception {
        Thread end = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (java.io.IOException problem) {
                System.err.println(problem);
            }
            Runtime.getRuntime().halt(0);
        });
        end.setDaemon(true);
        end.start();
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(arguments[0]);
        Connection connection = factory.createConnection("admin", "admin");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(arguments[1]));
        StringBuilder out = new StringBuilder();
        for (long number = 0; ; number++) {
            send(session, producer, number);
            out.setLength(0);
            out.append("{\"number\": ").append(number).append(", \"at_ns\": ").append(System.nanoTime()).append("}\n");
            System.out.print(out);
            System.out.flush();
            Thread.sleep(1);
        }
    }

    private static void send(Session session, MessageProducer producer, long number) throws Exception {
        TextMessage message = session.createTextMessage(Long.toString(number));
        message.setStringProperty("_AMQ_DUPL_ID", "failover-" + number);
        while (true) {
            try {
                producer.send(message);
                return;
            } catch (JMSException problem) {
                if (problem.getMessage() == null || problem.getMessage().contains("closed")) {
                    throw problem;
                }
            }
        }
    }
}
