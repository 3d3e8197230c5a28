package network;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.TextMessage;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.BrokerId;

/**
 * What was sent, and what was worked on. A text is "phase/client/number".
 *
 * <p>A broker that is killed may have stored a message whose sender has no answer yet, or may have given one out whose
 * acknowledgement it has not stored. Both come again, with the same JMSMessageID. So every id is kept, as an application does it with
 * a unique key in its database, and a message whose id is known is not worked on: it is "again". One that was worked on twice is
 * "doubled".
 */
final class Ledger {
  volatile String phase = "start";
  volatile boolean quiet;
  private final Map<String, Boolean> sent = new ConcurrentHashMap<>();
  private final Map<String, Boolean> ids = new ConcurrentHashMap<>();
  private final Map<String, AtomicInteger> worked = new ConcurrentHashMap<>();
  private final Map<String, AtomicInteger> again = new ConcurrentHashMap<>();
  private final Map<String, AtomicInteger> hops = new ConcurrentHashMap<>();
  private final Map<String, String> brokers = new ConcurrentHashMap<>();
  private final List<String> failures = new CopyOnWriteArrayList<>();

  void sent(String text) {
    sent.put(text, true);
  }

  /** The broker at an address has this id. */
  void met(String id, String address) {
    brokers.put(id, address);
  }

  /** A message has come from the broker at an address. */
  void received(Message message, String address) throws JMSException {
    String text = ((TextMessage) message).getText();
    if (ids.putIfAbsent(message.getJMSMessageID(), true) != null) {
      count(again, phaseOf(text));
      return;
    }
    count(worked, text);
    BrokerId[] path = ((ActiveMQMessage) message).getBrokerPath();
    for (int at = 0; path != null && at < path.length; at++) {
      String next = at + 1 < path.length ? known(path[at + 1]) : address;
      count(hops, phaseOf(text) + "/" + known(path[at]) + ">" + next);
    }
  }

  void failed(String client, Exception failure) {
    failures.add(client + ": " + failure);
  }

  private static void count(Map<String, AtomicInteger> counts, String key) {
    counts.computeIfAbsent(key, absent -> new AtomicInteger()).incrementAndGet();
  }

  private String known(BrokerId id) {
    return brokers.getOrDefault(id.getValue(), id.getValue());
  }

  private static String phaseOf(String text) {
    return text.substring(0, text.indexOf('/'));
  }

  /** By phase: sent, received, lost, doubled, again, and hops from address to address; and the failures that the clients were told. */
  String counts() {
    Map<String, Map<String, Integer>> phases = new TreeMap<>();
    for (String text : sent.keySet()) {
      add(phases, text, "sent", 1);
      add(phases, text, "lost", worked.containsKey(text) ? 0 : 1);
    }
    worked.forEach((text, times) -> {
      add(phases, text, "received", 1);
      add(phases, text, "doubled", times.get() - 1);
    });
    again.forEach((name, times) -> add(phases, name + "/", "again", times.get()));
    hops.forEach((key, times) -> add(phases, key, key.substring(key.indexOf('/') + 1), times.get()));
    Map<String, String> answer = new TreeMap<>();
    phases.forEach((name, counts) -> {
      Map<String, String> numbers = new TreeMap<>();
      counts.forEach((key, count) -> numbers.put(key, count.toString()));
      answer.put(name, object(numbers));
    });
    String told = failures.stream().map(Ledger::quoted).collect(Collectors.joining(", "));
    return "{\"phases\": " + object(answer) + ", \"failures\": [" + told + "]}";
  }

  private static void add(Map<String, Map<String, Integer>> phases, String text, String key, int count) {
    phases.computeIfAbsent(phaseOf(text), absent -> new TreeMap<>()).merge(key, count, Integer::sum);
  }

  /** A JSON object; the values are JSON already. */
  static String object(Map<String, String> values) {
    return values.entrySet().stream().map(each -> quoted(each.getKey()) + ": " + each.getValue())
        .collect(Collectors.joining(", ", "{", "}"));
  }

  static String quoted(String text) {
    return "\"" + text.replace("\\", "/").replace("\"", "'").replaceAll("\\s+", " ") + "\"";
  }
}
