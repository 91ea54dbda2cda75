import { globSync } from "node:fs";
import { aptInstall, ensure } from "./ensure.ts";

/** A library that moves the clock of a program that loads it (LD_PRELOAD). */
export const findFaketime = (): string | undefined => globSync("/usr/lib/*/faketime/libfaketime.so.1")[0];

/** Ensures that it is installed. @throws Error with the command */
export function ensureFaketime(): void {
  ensure({
    why: "The tests of targets whose clock is wrong need libfaketime",
    install: aptInstall("libfaketime"),
    found: () => findFaketime() !== undefined,
  });
}
