package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.XAConnection;
import jakarta.jms.XASession;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.artemis.core.transaction.impl.XidImpl;
import org.apache.activemq.artemis.jms.client.ActiveMQXAConnectionFactory;

/** Distributed transactions, through the resource a transaction manager would get. */
final class Xa {
  private Xa() { }

  static XASession session(World world) throws Exception {
    ActiveMQXAConnectionFactory factory = world.kept(new ActiveMQXAConnectionFactory(world.url + "?useTopologyForLoadBalancing=false&callTimeout=15000"));
    XAConnection connection = world.kept(factory.createXAConnection(world.user, world.password));
    connection.start();
    return connection.createXASession();
  }

  /** The branch of this name; the same in every JVM. */
  static Xid xid(String name) {
    byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
    byte[] branch = Arrays.copyOfRange(bytes, Math.max(0, bytes.length - 60), bytes.length);
    return new XidImpl(branch, 7, "global".getBytes(StandardCharsets.UTF_8));
  }

  /** In a branch: "order" is taken from `in` and "invoice" sent to `out`; ended. */
  static void move(XASession session, Xid xid, Queue in, Queue out) throws Exception {
    XAResource resource = session.getXAResource();
    resource.start(xid, XAResource.TMNOFLAGS);
    MessageConsumer consumer = session.createConsumer(in);
    World.texts(consumer, "order");
    World.sendTexts(session, out, "invoice");
    resource.end(xid, XAResource.TMSUCCESS);
    consumer.close();
  }

  private static void holds(World world, Queue queue, String... texts) throws Exception {
    MessageConsumer consumer = world.session().createConsumer(queue);
    World.texts(consumer, texts);
    World.nothing(consumer);
    consumer.close();
  }

  private static Queue filled(World world, XASession session) throws Exception {
    Queue in = session.createQueue(world.name("in"));
    World.sendTexts(world.session(), in, "order");
    return in;
  }

  private static boolean inDoubt(XAResource resource, Xid xid) throws Exception {
    List<Xid> found = Arrays.asList(resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN));
    return found.contains(xid);
  }

  @Scenario
  static void onePhase(World world) throws Exception {
    XASession session = session(world);
    Queue in = filled(world, session);
    Queue out = session.createQueue(world.name("out"));
    Xid xid = xid(world.name("x"));
    move(session, xid, in, out);
    holds(world, out);
    session.getXAResource().commit(xid, true);
    holds(world, in);
    holds(world, out, "invoice");
  }

  @Scenario
  static void twoPhases(World world) throws Exception {
    XASession session = session(world);
    Queue in = filled(world, session);
    Queue out = session.createQueue(world.name("out"));
    Xid xid = xid(world.name("x"));
    move(session, xid, in, out);
    XAResource resource = session.getXAResource();
    check(!inDoubt(resource, xid), "not in doubt before prepare");
    equal(XAResource.XA_OK, resource.prepare(xid), "vote");
    check(inDoubt(resource, xid), "in doubt after prepare");
    holds(world, in);
    holds(world, out);
    resource.commit(xid, false);
    check(!inDoubt(resource, xid), "not in doubt after commit");
    holds(world, in);
    holds(world, out, "invoice");
  }

  @Scenario
  static void rollback(World world) throws Exception {
    XASession session = session(world);
    Queue in = filled(world, session);
    Queue out = session.createQueue(world.name("out"));
    Xid xid = xid(world.name("x"));
    move(session, xid, in, out);
    session.getXAResource().rollback(xid);
    holds(world, out);
    Xid second = xid(world.name("y"));
    move(session, second, in, out);
    session.getXAResource().prepare(second);
    session.getXAResource().rollback(second);
    holds(world, in, "order");
    holds(world, out);
  }

  @Scenario
  static void anotherSessionFinishesIt(World world) throws Exception {
    XASession session = session(world);
    Queue in = filled(world, session);
    Queue out = session.createQueue(world.name("out"));
    Xid xid = xid(world.name("x"));
    move(session, xid, in, out);
    session.getXAResource().prepare(xid);
    session.close();
    session(world).getXAResource().commit(xid, false);
    holds(world, in);
    holds(world, out, "invoice");
  }

  @Scenario
  static void suspendAndResume(World world) throws Exception {
    XASession session = session(world);
    Queue out = session.createQueue(world.name("out"));
    XAResource resource = session.getXAResource();
    Xid xid = xid(world.name("x"));
    Xid other = xid(world.name("y"));
    resource.start(xid, XAResource.TMNOFLAGS);
    World.sendTexts(session, out, "1");
    resource.end(xid, XAResource.TMSUSPEND);
    resource.start(other, XAResource.TMNOFLAGS);
    World.sendTexts(session, out, "other");
    resource.end(other, XAResource.TMFAIL);
    resource.start(xid, XAResource.TMRESUME);
    World.sendTexts(session, out, "2");
    resource.end(xid, XAResource.TMSUCCESS);
    resource.rollback(other);
    resource.commit(xid, true);
    holds(world, out, "1", "2");
  }

  @Scenario
  static void errorsAndTimeouts(World world) throws Exception {
    XASession session = session(world);
    XAResource resource = session.getXAResource();
    Xid xid = xid(world.name("x"));
    equal(XAException.XAER_NOTA, World.refused(XAException.class, () -> resource.commit(xid, false)).errorCode, "commit");
    equal(XAException.XAER_NOTA, World.refused(XAException.class, () -> resource.rollback(xid)).errorCode, "rollback");
    equal(XAException.XAER_NOTA, World.refused(XAException.class, () -> resource.forget(xid)).errorCode, "forget");
    equal(XAException.XAER_NOTA, World.refused(XAException.class, () -> resource.prepare(xid)).errorCode, "prepare");
    equal(300, resource.getTransactionTimeout(), "default timeout");
    check(resource.setTransactionTimeout(1), "a timeout can be set");
    Queue out = session.createQueue(world.name("out"));
    resource.start(xid, XAResource.TMNOFLAGS);
    equal(XAException.XAER_DUPID, World.refused(XAException.class, () -> session(world).getXAResource().start(xid, XAResource.TMNOFLAGS)).errorCode, "start twice");
    World.sendTexts(session, out, "too slow");
    Thread.sleep(2_500);
    World.refused(XAException.class, () -> resource.end(xid, XAResource.TMSUCCESS));
    holds(world, out);
  }

  @Scenario
  static void workOutsideOfABranchCommitsByItself(World world) throws Exception {
    XASession session = session(world);
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(session, queue, "alone");
    holds(world, queue, "alone");
    check(session.getTransacted(), "an XA session calls itself transacted");
    check(session instanceof Session, "and is a session");
  }
}
