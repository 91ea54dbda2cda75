import { expect, test } from "bun:test";
import { createLog, Verbosity } from "./log.ts";

function logAt(level: string) {
  const lines: Record<string, unknown>[] = [];
  const log = createLog(level, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines, verbosity: new Verbosity(log) };
}

test.each(["debug", "info", "warn", "error", "fatal"])(
  "toggling a log at %p switches it to debug and back, and logs the change",
  (level) => {
    const { log, lines, verbosity } = logAt(level);
    verbosity.toggle();
    log.debug("seen");
    verbosity.toggle();
    log.debug("seen at debug alone");
    const changed = (log_level: string) => ["the log level has changed", log_level];
    const said = lines.map(({ msg, log_level }) => (log_level ? [msg, log_level] : [msg]));
    expect(said).toEqual(
      level === "debug" ? [["seen"], ["seen at debug alone"]] : [changed("debug"), ["seen"], changed(level)],
    );
  },
);

test("uvicorn's names of levels work like pino's", () => {
  for (const [level, names] of [
    ["warning", ["warn", "error", "fatal"]],
    ["critical", ["fatal"]],
  ] as const) {
    const { log, lines, verbosity } = logAt(level);
    for (const name of ["info", "warn", "error", "fatal"] as const) log[name](name);
    expect(lines.map(({ msg }) => msg)).toEqual([...names]);
    verbosity.toggle();
    verbosity.toggle();
    expect(log.level).toBe(level);
  }
});

test("setting the same verbosity twice changes nothing, and trace stays trace", () => {
  const { log, lines, verbosity } = logAt("warn");
  verbosity.verbose = false;
  verbosity.verbose = true;
  verbosity.verbose = true;
  expect([log.level, lines.length]).toEqual(["debug", 1]);
  const trace = logAt("trace");
  trace.verbosity.toggle();
  expect([trace.log.level, trace.lines]).toEqual(["trace", []]);
});
