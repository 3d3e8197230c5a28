package atalanta.openwire;

import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.XAConnection;
import javax.jms.XASession;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQXAConnectionFactory;

/** Flows of local and distributed transactions. */
final class Transactions {
  private Transactions() {}

  static void committed(World world) throws Exception {
    Session session = world.session(Session.SESSION_TRANSACTED);
    Session other = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageConsumer consumer = other.createConsumer(other.createQueue(world.name));
    World.send(session, world.name, "1", "2");
    World.nothing(consumer);
    session.commit();
    World.same("1", World.text(consumer));
    World.same("2", World.text(consumer));
    World.send(session, world.name, "3");
    session.rollback();
    World.nothing(consumer);
  }

  static void consumed(World world) throws Exception {
    Session other = world.session(Session.AUTO_ACKNOWLEDGE);
    World.send(other, world.name, "1", "2", "3");
    Session session = world.session(Session.SESSION_TRANSACTED);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    World.same("1", World.text(consumer));
    World.same("2", World.text(consumer));
    session.rollback();
    Message again = consumer.receive(World.WAIT_MS);
    World.same("1", World.text(again));
    World.same(true, again.getJMSRedelivered());
    World.same("2", World.text(consumer));
    World.same("3", World.text(consumer));
    session.commit();
    consumer.close();
    World.nothing(other.createConsumer(other.createQueue(world.name)));
  }

  static void rolledBackAndLeft(World world) throws Exception {
    Session other = world.session(Session.AUTO_ACKNOWLEDGE);
    World.send(other, world.name, "1", "2");
    var connection = world.connect();
    Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    World.same("1", World.text(consumer));
    session.rollback();
    connection.close();
    consumer = other.createConsumer(other.createQueue(world.name));
    Message again = consumer.receive(World.WAIT_MS);
    World.same("1", World.text(again));
    World.same(2, again.getIntProperty("JMSXDeliveryCount"));
    World.same("2", World.text(consumer));
  }

  static void manyInOne(World world) throws Exception {
    Session session = world.session(Session.SESSION_TRANSACTED);
    String[] texts = new String[3000];
    for (int at = 0; at < texts.length; at++) {
      texts[at] = "" + at;
    }
    World.send(session, world.name, texts);
    session.commit();
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    for (String text : texts) {
      World.same(text, World.text(consumer));
    }
    session.commit();
    World.nothing(consumer);
  }

  record Branch(byte[] global) implements Xid {
    @Override
    public int getFormatId() {
      return 7;
    }

    @Override
    public byte[] getGlobalTransactionId() {
      return global;
    }

    @Override
    public byte[] getBranchQualifier() {
      return new byte[] {1, 2};
    }
  }

  static void distributed(World world) throws Exception {
    XAConnection connection = new ActiveMQXAConnectionFactory("admin", "admin", world.url).createXAConnection();
    world.add(connection::close);
    connection.start();
    XASession session = connection.createXASession();
    XAResource resource = session.getXAResource();
    Session other = world.session(Session.AUTO_ACKNOWLEDGE);
    World.send(other, world.name, "in");
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    MessageConsumer results = other.createConsumer(other.createQueue(world.name + ".out"));
    Xid xid = new Branch((world.name + System.nanoTime()).getBytes());
    resource.start(xid, XAResource.TMNOFLAGS);
    World.same("in", World.text(consumer));
    World.send(session, world.name + ".out", "out");
    resource.end(xid, XAResource.TMSUCCESS);
    World.same(XAResource.XA_OK, resource.prepare(xid));
    World.nothing(results);
    World.same(1, resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN).length);
    resource.commit(xid, false);
    World.same("out", World.text(results));
    World.same(0, resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN).length);

    Xid second = new Branch((world.name + System.nanoTime()).getBytes());
    World.send(other, world.name, "again");
    resource.start(second, XAResource.TMNOFLAGS);
    World.same("again", World.text(consumer));
    World.send(session, world.name + ".out", "dropped");
    resource.end(second, XAResource.TMSUCCESS);
    resource.rollback(second);
    World.nothing(results);
    Xid third = new Branch((world.name + System.nanoTime()).getBytes());
    resource.start(third, XAResource.TMNOFLAGS);
    World.same("again", World.text(consumer));
    resource.end(third, XAResource.TMSUCCESS);
    resource.commit(third, true);
    try {
      resource.commit(third, true);
      throw new AssertionError("a branch was committed twice");
    } catch (XAException expected) {
      World.same(XAException.XAER_NOTA, expected.errorCode);
    }
  }
}
