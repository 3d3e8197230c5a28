package atalanta.openwire;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Runs the flows that the arguments name, against the broker of the first one; prints a JSON line for each. */
public final class Main {
  static final long FLOW_SECONDS = 60;

  private Main() {}

  public static void main(String[] arguments) throws Exception {
    ExecutorService threads = Executors.newCachedThreadPool(
        task -> {
          Thread thread = new Thread(task);
          thread.setDaemon(true);
          return thread;
        });
    for (int at = 1; at < arguments.length; at++) {
      String name = arguments[at];
      String why = outcome(threads, name, new World(arguments[0], name));
      System.out.println("{\"flow\": \"" + name + "\", \"failure\": \"" + escaped(why) + "\"}");
      System.out.flush();
    }
    System.exit(0);
  }

  private static String outcome(ExecutorService threads, String name, World world) throws Exception {
    Callable<String> run = () -> {
      try {
        method(name).invoke(null, world);
        return "";
      } catch (InvocationTargetException failure) {
        StringBuilder text = new StringBuilder(String.valueOf(failure.getCause()));
        for (StackTraceElement line : failure.getCause().getStackTrace()) {
          if (line.getClassName().startsWith("atalanta")) {
            text.append(" at ").append(line);
          }
        }
        return text.toString();
      } finally {
        world.close();
      }
    };
    try {
      return threads.submit(run).get(FLOW_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException tooLong) {
      return "not done within " + FLOW_SECONDS + " s";
    } catch (ExecutionException failure) {
      return String.valueOf(failure.getCause());
    }
  }

  private static Method method(String name) throws Exception {
    for (Class<?> flows : new Class<?>[] {
        Queues.class, Topics.class, Transactions.class, Conversions.class, DeadLetters.class, Spring.class,
        Restart.class}) {
      for (Method method : flows.getDeclaredMethods()) {
        if (method.getName().equals(name)) {
          return method;
        }
      }
    }
    throw new IllegalArgumentException("there is no flow " + name);
  }

  private static String escaped(String text) {
    return text.replace("\\", "\\\\").replace("\"", "'").replaceAll("\\s+", " ");
  }
}
