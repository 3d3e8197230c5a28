import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/**
 * A JMS client of any version (javax or jakarta: no type of JMS is named) that finds its broker by the URL. For each
 * line of the input it connects anew, sends and receives a message, and prints how long that took, in ms, or "failed".
 */
public class JgroupsClient {
   public static void main(String[] arguments) throws Exception {
      while (System.in.read() >= 0) {
         long begun = System.nanoTime();
         String said;
         try (ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(arguments[0], "admin", "admin");
            var connection = factory.createConnection()) {
            connection.start();
            var session = connection.createSession();
            var queue = session.createQueue("found");
            session.createProducer(queue).send(session.createTextMessage("hello"));
            boolean came = session.createConsumer(queue).receive(10_000) != null;
            said = came ? "found " + (System.nanoTime() - begun) / 1_000_000 : "failed: no message";
         } catch (Exception problem) {
            said = "failed: " + problem;
         }
         System.out.println(said); // when it is closed: the node may end now
         System.out.flush();
      }
      System.exit(0);
   }
}
