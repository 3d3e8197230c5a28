import java.io.File;
import java.util.Collections;
import org.apache.activemq.artemis.core.config.impl.SecurityConfiguration;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.spi.core.security.ActiveMQJAASSecurityManager;
import org.apache.activemq.artemis.spi.core.security.jaas.InVMLoginModule;

/** A real broker of any Artemis 2, from the jars of artemis-server alone. One argument: the path of broker.xml. */
public class EmbeddedNode {
   public static void main(String[] arguments) throws Exception {
      SecurityConfiguration users = new SecurityConfiguration();
      users.addUser("admin", "admin");
      users.addRole("admin", "amq");
      EmbeddedActiveMQ broker = new EmbeddedActiveMQ();
      broker.setConfigResourcePath(new File(arguments[0]).toURI().toString());
      broker.setSecurityManager(new ActiveMQJAASSecurityManager(InVMLoginModule.class.getName(), users));
      broker.start();
      System.out.println("ready " + broker.getActiveMQServer().getVersion().getFullVersion());
      Runtime.getRuntime().addShutdownHook(new Thread(() -> {
         try {
            broker.stop();
         } catch (Exception problem) {
            problem.printStackTrace();
         }
      }));
      Thread.currentThread().join();
   }
}
