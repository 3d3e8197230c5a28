package atalanta.classic;

import org.apache.activemq.broker.BrokerFactory;
import org.apache.activemq.broker.BrokerService;

/** A broker of ActiveMQ Classic in a process of its own, as `activemq console xbean:FILE` runs it. Argument: the activemq.xml. */
public final class Service {
  private Service() { }

  public static void main(String[] arguments) throws Exception {
    BrokerService service = BrokerFactory.createBroker("xbean:file:" + arguments[0]);
    service.start();  // returns when the store is its own: a slave waits here
    service.waitUntilStopped();
    Runtime.getRuntime().halt(0);
  }
}
