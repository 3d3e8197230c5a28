package network;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.jms.JMSException;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;

/** The clients of the demo: one command a line on standard input, one line of JSON for each on standard output. */
public final class Clients {
  private Clients() {}

  public static void main(String[] arguments) throws Exception {
    Ledger ledger = new Ledger();
    List<Client> clients = new ArrayList<>();
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      String[] words = line.split("\t");
      String answer = "{}";
      try {
        switch (words[0]) {
          case "open" -> clients.add(new Client(words, ledger));
          case "broker" -> meet(words, ledger);
          case "phase" -> ledger.phase = words[1];
          case "where" -> answer = where(clients);
          case "counts" -> answer = ledger.counts();
          case "quiet" -> ledger.quiet = true;
          default -> throw new IllegalArgumentException("unknown command " + words[0]);
        }
      } catch (Exception failure) {
        answer = "{\"failure\": " + Ledger.quoted(String.valueOf(failure)) + "}";
      }
      System.out.println(answer);
      System.out.flush();
    }
    System.exit(0); // standard input has ended: nobody is left to ask
  }

  /** Learns the id of a broker, which the paths of messages have. The words are: broker, address, user, password. */
  private static void meet(String[] words, Ledger ledger) throws JMSException {
    ActiveMQConnection connection =
        (ActiveMQConnection) new ActiveMQConnectionFactory(words[2], words[3], "tcp://" + words[1]).createConnection();
    connection.start();
    ledger.met(connection.getBrokerInfo().getBrokerId().getValue(), words[1]);
    connection.close();
  }

  /** The address of the broker of each client, "" while it has none. */
  private static String where(List<Client> clients) {
    Map<String, String> places = new TreeMap<>();
    for (Client client : clients) {
      places.put(client.name, Ledger.quoted(client.place()));
    }
    return Ledger.object(places);
  }
}
