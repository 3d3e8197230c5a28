package atalanta.interop;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** Marks a static method (World) as a scenario. Its name on the command line is "class.method". */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
@interface Scenario {
  /** "main", or "before" and "after" for the two halves around a restart of the broker. */
  String phase() default "main";
}
