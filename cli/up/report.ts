import { join } from "node:path";
import { defaultPassword, trialUsers } from "../../trial/idp/users.ts";
import type { Io } from "../io.ts";
import { hasColours } from "../screen.ts";
import { shellWord } from "../text.ts";
import type { Settings } from "./settings.ts";

/** Messages while the processes start and run; on stderr. */
export interface Progress {
  /** A step has finished. */
  done(text: string): void;
  /** A step will take a moment. */
  note(text: string): void;
  /** A line of a child process, or about stopping. */
  say(text: string): void;
  /** Since the start. */
  seconds(): number;
}

export function progressOn({ stderr, env }: Pick<Io, "stderr" | "env">): Progress {
  const started = performance.now();
  const colour = hasColours(stderr, env);
  const paint = (code: number, text: string) => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);
  return {
    done: (text) => void stderr.write(`${paint(32, "✓")} ${text}\n`),
    note: (text) => void stderr.write(`${paint(2, `  ${text} ...`)}\n`),
    say: (text) => void stderr.write(`${paint(2, text)}\n`),
    seconds: () => (performance.now() - started) / 1000,
  };
}

/** The text shown when everything is ready: the address and the next command. */
export function summary(settings: Settings, seconds: number): string {
  const { publicUrl, mtls, startsIdp, environment, dataDir } = settings;
  const password = environment.SVC_TRIAL_PASSWORD ? "the one in SVC_TRIAL_PASSWORD" : defaultPassword;
  const users = trialUsers.map(({ email, groups }) =>
    groups.length > 0 ? `${email} (${groups.join(", ")})` : email,
  );
  const server =
    environment.SVC_SERVER || publicUrl === "http://127.0.0.1:8000" ? "" : ` --server ${publicUrl}`;
  const authority = join(dataDir, "mtls/ca.pem");
  const lines = [
    "",
    `svc is ready at ${publicUrl} (${seconds.toFixed(1)} s)`,
    "",
    ...(startsIdp ? [`  Trial users  ${users.join(", ")}`, `  Password     ${password}`] : []),
    `  Data, logs   ${dataDir}`,
    ...(mtls ? [`  Mutual TLS   ${mtls.url}`, `  Authority    ${authority}`] : []),
    "",
    "In another terminal, type:",
    "",
    ...(mtls ? [`  export NODE_EXTRA_CA_CERTS=${shellWord(authority)}`] : []),
    `  npx svc login ${startsIdp ? trialUsers[0]!.email : "<your user name>"}${server}${mtls ? " --certificate" : ""}`,
    "",
    "Ctrl-C here stops everything.",
    "",
  ];
  return lines.join("\n");
}
