package atalanta.interop;

import static atalanta.interop.World.equal;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;

/** Users (the harness's: admin of role amq; guest of role guests, who may use only "guest.#" and only read "readonly.#"). */
final class Security {
  private Security() { }

  @Scenario
  static void wrongPasswordIsRefused(World world) throws Exception {
    World.refused(JMSSecurityException.class, () -> world.kept(world.factory("").createConnection(world.user, "wrong")));
  }

  @Scenario
  static void unknownUserIsRefused(World world) throws Exception {
    World.refused(JMSSecurityException.class, () -> world.kept(world.factory("").createConnection("nobody", "nothing")));
  }

  @Scenario
  static void noUserIsRefused(World world) throws Exception {
    World.refused(JMSSecurityException.class, () -> world.kept(world.factory("").createConnection()));
  }

  private static Session guest(World world) throws JMSException {
    Connection connection = world.kept(world.factory("").createConnection("guest", "guest"));
    connection.start();
    return connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
  }

  @Scenario
  static void permittedWorks(World world) throws Exception {
    Session guest = guest(world);
    World.sendTexts(guest, guest.createQueue(world.name("guest", "q")), "1");
    World.texts(guest.createConsumer(guest.createQueue(world.name("guest", "q"))), "1");
  }

  @Scenario
  static void sendWithoutPermissionIsRefused(World world) throws Exception {
    Session admin = world.session();
    var queue = admin.createQueue(world.name("readonly", "q"));
    World.sendTexts(admin, queue, "from admin");
    Session guest = guest(world);
    World.refused(JMSSecurityException.class, () -> World.sendTexts(guest, queue, "from guest"));
    MessageConsumer consumer = guest.createConsumer(queue);
    World.texts(consumer, "from admin");
    World.nothing(consumer);
  }

  @Scenario
  static void sendInATransactionWithoutPermissionIsRefused(World world) throws Exception {
    Session admin = world.session();
    var queue = admin.createQueue(world.name("readonly", "q"));
    World.sendTexts(admin, queue, "from admin");
    Connection connection = world.kept(world.factory("").createConnection("guest", "guest"));
    Session guest = connection.createSession(true, Session.SESSION_TRANSACTED);
    World.refused(JMSException.class, () -> {
      World.sendTexts(guest, queue, "from guest");
      guest.commit();
    });
    equal(java.util.List.of("from admin"), World.drained(admin.createConsumer(queue)), "messages");
  }

  @Scenario
  static void consumeWithoutPermissionIsRefused(World world) throws Exception {
    Session admin = world.session();
    var queue = admin.createQueue(world.name("q"));
    World.sendTexts(admin, queue, "not for guests");
    Session guest = guest(world);
    World.refused(JMSSecurityException.class, () -> guest.createConsumer(queue));
    World.texts(admin.createConsumer(queue), "not for guests");
  }

  @Scenario
  static void createWithoutPermissionIsRefused(World world) throws Exception {
    Session guest = guest(world);
    World.refused(JMSSecurityException.class, () -> guest.createConsumer(guest.createQueue(world.name("q"))));
    World.refused(JMSSecurityException.class, () -> guest.createConsumer(guest.createTopic(world.name("t"))));
  }
}
