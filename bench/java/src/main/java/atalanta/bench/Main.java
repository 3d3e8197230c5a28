package atalanta.bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * Obeys lines of bench/generators.py, so that one warm JVM serves every run: {@code start name=value …},
 * {@code count}, {@code stop}. Each is answered by one line of JSON.
 */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Load load = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.trim().split(" ");
            try {
                switch (words[0]) {
                    case "start" -> {
                        load = new Load(options(words));
                        load.start();
                        say("{\"ready\": 1}");
                    }
                    case "count" -> say(load.counts());
                    case "stop" -> {
                        load.stop();
                        say(load.counts());
                        load = null;
                    }
                    default -> throw new IllegalArgumentException(words[0] + ": no such command");
                }
            } catch (Exception problem) {
                say("{\"error\": \"" + problem.toString().replaceAll("[\"\\\\\\n\\r]", " ") + "\"}");
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, String> options(String[] words) {
        Map<String, String> found = new HashMap<>();
        for (int i = 1; i < words.length; i++) {
            String[] parts = words[i].split("=", 2);
            found.put(parts[0], parts[1]);
        }
        return found;
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
