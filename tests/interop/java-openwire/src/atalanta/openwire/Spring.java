package atalanta.openwire;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.jms.Message;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.RedeliveryPolicy;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.jms.listener.SessionAwareMessageListener;

/** Flows of Spring: JmsTemplate, and the listener container that most of its applications use. */
final class Spring {
  private static final int MESSAGES = 200;

  private Spring() {}

  private static CachingConnectionFactory connections(World world) {
    CachingConnectionFactory cached = new CachingConnectionFactory(world.factory(""));
    world.add(cached::destroy);
    return cached;
  }

  private static JmsTemplate template(World world) {
    JmsTemplate template = new JmsTemplate(connections(world));
    template.setReceiveTimeout(World.WAIT_MS);
    return template;
  }

  private static DefaultMessageListenerContainer container(
      World world, ActiveMQConnectionFactory factory, SessionAwareMessageListener<Message> listener) {
    DefaultMessageListenerContainer container = new DefaultMessageListenerContainer();
    container.setConnectionFactory(factory);
    container.setDestinationName(world.name);
    container.setMessageListener(listener);
    return container;
  }

  private static void start(World world, DefaultMessageListenerContainer container) {
    container.afterPropertiesSet();
    container.start();
    world.add(container::shutdown);
  }

  static void springTemplate(World world) throws Exception {
    JmsTemplate template = template(world);
    for (int at = 0; at < 20; at++) {
      String kind = at % 2 == 0 ? "even" : "odd";
      template.convertAndSend(world.name, "" + at, message -> {
        message.setStringProperty("kind", kind);
        return message;
      });
    }
    List<Object> browsed = template.browse(world.name, (session, browser) -> {
      List<Object> found = new ArrayList<>();
      found.addAll(Collections.list(browser.getEnumeration()));
      return found;
    });
    World.same(20, browsed.size());
    World.same("1", template.receiveSelectedAndConvert(world.name, "kind = 'odd'"));
    World.same("0", template.receiveAndConvert(world.name));
    World.same("2", template.receiveAndConvert(world.name));
  }

  static void springTopic(World world) throws Exception {
    CountDownLatch arrived = new CountDownLatch(2 * MESSAGES);
    for (int at = 0; at < 2; at++) {
      DefaultMessageListenerContainer container =
          container(world, world.factory(""), (message, session) -> arrived.countDown());
      container.setPubSubDomain(true);
      container.setSubscriptionDurable(true);
      container.setDurableSubscriptionName("sub");
      container.setClientId(world.name + at);
      start(world, container);
      while (!container.isRegisteredWithDestination()) {
        Thread.sleep(10);
      }
    }
    JmsTemplate template = template(world);
    template.setPubSubDomain(true);
    for (int at = 0; at < MESSAGES; at++) {
      template.convertAndSend(world.name, "" + at);
    }
    World.same(true, arrived.await(World.WAIT_MS, TimeUnit.MILLISECONDS));
  }

  static void springRequestReply(World world) throws Exception {
    DefaultMessageListenerContainer container = container(world, world.factory(""), (message, session) -> {
      Message answer = session.createTextMessage("re: " + World.text(message));
      answer.setJMSCorrelationID(message.getJMSMessageID());
      session.createProducer(message.getJMSReplyTo()).send(answer);
    });
    container.setConcurrentConsumers(2);
    start(world, container);
    JmsTemplate template = template(world);
    for (int at = 0; at < 30; at++) {
      String text = "" + at;
      Message answer = template.sendAndReceive(world.name, session -> session.createTextMessage(text));
      World.same("re: " + text, World.text(answer));
    }
  }

  /** Each message fails at its first attempt: all arrive once more, and are processed once. */
  static void springContainer(World world) throws Exception {
    ActiveMQConnectionFactory factory = world.factory("");
    RedeliveryPolicy policy = new RedeliveryPolicy();
    policy.setInitialRedeliveryDelay(0);
    policy.setRedeliveryDelay(0);
    factory.setRedeliveryPolicy(policy);
    Set<String> failed = ConcurrentHashMap.newKeySet();
    Set<String> done = ConcurrentHashMap.newKeySet();
    Set<String> doubled = ConcurrentHashMap.newKeySet();
    CountDownLatch left = new CountDownLatch(MESSAGES);
    DefaultMessageListenerContainer container = container(world, factory, (message, session) -> {
      String text = World.text(message);
      if (failed.add(text)) {
        throw new IllegalArgumentException("the first attempt fails");
      }
      if (!done.add(text)) {
        doubled.add(text);
      }
      left.countDown();
    });
    container.setSessionTransacted(true);
    container.setConcurrency("2-5");
    container.setCacheLevel(DefaultMessageListenerContainer.CACHE_CONSUMER);
    start(world, container);
    JmsTemplate template = template(world);
    for (int at = 0; at < MESSAGES; at++) {
      template.convertAndSend(world.name, "" + at);
    }
    World.same(true, left.await(3 * World.WAIT_MS, TimeUnit.MILLISECONDS));
    container.shutdown();
    World.same(MESSAGES, done.size());
    World.same(0, doubled.size());
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    World.nothing(session.createConsumer(session.createQueue(world.name)));
  }
}
