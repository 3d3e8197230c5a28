import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.activemq.artemis.cli.Artemis;

/** Commands of the `artemis` of a distribution, one after the other. One argument: a file with a command a line, its words separated by tabs. */
public class CreatedInstances {
   public static void main(String[] arguments) throws Exception {
      for (String line : Files.readAllLines(Path.of(arguments[0]))) {
         Artemis.internalExecute(line.split("\t"));
      }
   }
}
