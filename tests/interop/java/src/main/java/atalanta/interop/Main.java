package atalanta.interop;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Runs the scenarios against one broker: a line "PASS name" or "FAIL name: why" each, then "N passed, M failed".
 * Options: --url, --user, --password, --only name[,name…] (a trailing * matches the rest), --phase, --seconds (limit
 * of one scenario), --run (a word that makes destination names unique; the same in "before" and "after"), --list.
 */
final class Main {
  private static final List<Class<?>> GROUPS = List.of(
      Bodies.class, LargeMessages.class, Properties.class, Headers.class, Selectors.class, Receiving.class, Topics.class,
      Subscriptions.class, Temporaries.class, Transactions.class, Xa.class, Reattach.class,
      Windows.class, Acknowledging.class, Redelivery.class, Timing.class,
      Duplicates.class, Addresses.class, Queues.class, Sending.class, Full.class, Security.class, Restart.class);

  private Main() { }

  public static void main(String[] arguments) throws Exception {
    Map<String, String> options = options(arguments);
    String phase = options.getOrDefault("phase", "main");
    List<String> only = Arrays.asList(options.getOrDefault("only", "*").split(","));
    long seconds = Long.parseLong(options.getOrDefault("seconds", "40"));
    int passed = 0;
    int failed = 0;
    for (Method method : methods()) {
      String name = name(method);
      if (!method.getAnnotation(Scenario.class).phase().equals(phase) || only.stream().noneMatch(p -> matches(p, name))) {
        continue;
      }
      if (options.containsKey("list")) {
        System.out.println(name);
        continue;
      }
      String why = run(method, new World(options, name), seconds);
      if (why == null) {
        passed++;
        System.out.println("PASS " + name);
      } else {
        failed++;
        System.out.println("FAIL " + name + ": " + why);
      }
    }
    if (!options.containsKey("list")) {
      System.out.println(passed + " passed, " + failed + " failed");
    }
    System.out.flush();
    Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
  }

  static Map<String, String> options(String[] arguments) {
    Map<String, String> options = new HashMap<>();
    for (int i = 0; i < arguments.length; i++) {
      String key = arguments[i].substring(2);
      boolean flag = i + 1 == arguments.length || arguments[i + 1].startsWith("--");
      options.put(key, flag ? "true" : arguments[++i]);
    }
    return options;
  }

  private static boolean matches(String pattern, String name) {
    return pattern.endsWith("*") ? name.startsWith(pattern.substring(0, pattern.length() - 1)) : name.equals(pattern);
  }

  private static String name(Method method) {
    return method.getDeclaringClass().getSimpleName().toLowerCase() + "." + method.getName();
  }

  private static List<Method> methods() {
    List<Method> found = new ArrayList<>();
    for (Class<?> group : GROUPS) {
      Arrays.stream(group.getDeclaredMethods()).filter(m -> m.isAnnotationPresent(Scenario.class))
          .sorted(Comparator.comparing(Method::getName)).forEach(found::add);
    }
    return found;
  }

  private static String run(Method method, World world, long seconds) throws InterruptedException {
    FutureTask<Void> task = new FutureTask<>(() -> {
      method.invoke(null, world);
      return null;
    });
    Thread thread = new Thread(task, name(method));
    thread.setDaemon(true);
    thread.start();
    String why = null;
    try {
      task.get(seconds, TimeUnit.SECONDS);
    } catch (TimeoutException stuck) {
      why = "stuck for " + seconds + " s at " + place(thread.getStackTrace());
      thread.interrupt();
    } catch (ExecutionException thrown) {
      Throwable cause = thrown.getCause() instanceof InvocationTargetException ? thrown.getCause().getCause() : thrown.getCause();
      why = oneLine(cause) + " at " + place(cause.getStackTrace());
    }
    world.close();
    return why;
  }

  /** The scenario's own frames of a stack. */
  private static String place(StackTraceElement[] stack) {
    StringBuilder text = new StringBuilder();
    for (StackTraceElement frame : stack) {
      if (frame.getClassName().startsWith("atalanta.interop.") && !frame.getClassName().contains("Main")) {
        text.append(text.length() == 0 ? "" : " < ").append(frame.getFileName()).append(':').append(frame.getLineNumber());
      }
    }
    return text.toString();
  }

  static String oneLine(Throwable thrown) {
    String text = thrown instanceof AssertionError ? thrown.getMessage() : thrown.toString();
    Throwable cause = thrown.getCause();
    if (cause != null && !String.valueOf(text).contains(String.valueOf(cause.getMessage()))) {
      text += " (" + cause + ")";
    }
    return String.valueOf(text).replace('\n', ' ').replace('\r', ' ').replace('\t', ' ');
  }
}
