import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../../platform/free_port.ts";
import { until } from "../process/until.ts";
import { sshServer } from "../programs.ts";

/** Debian's sshd, which accepts only certificates. */
export interface SshServer extends AsyncDisposable {
  port: number;
  /** The account that runs the tests, and the only one that can log in. */
  account: string;
  /** Clears the log. */
  forget(): void;
  /** Returns the log about the last client, after it has disconnected. */
  said(): Promise<string>;
  /** Replaces the trusted authority keys. */
  trust(lines: string): Promise<void>;
  /** Replaces its revocation list. */
  revoke(krl: Uint8Array): Promise<void>;
  /** A directory for client files. */
  directory: string;
  /** Options that make ssh, scp and sftp ignore the files of the account. */
  options: string[];
}

/** Starts sshd on a free port of 127.0.0.1. Certificates with one of `principals` can log in. */
export async function startSshServer(principals: readonly string[]): Promise<SshServer> {
  const account = Bun.spawnSync(["id", "-un"]).stdout.toString().trim();
  const directory = await mkdtemp(join(tmpdir(), "svc-sshd-"));
  const at = (name: string) => join(directory, name);
  const port = await freePort();
  // As root, sshd needs this directory for privilege separation.
  if (process.getuid?.() === 0) await mkdir("/run/sshd", { recursive: true, mode: 0o755 });
  Bun.spawnSync(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at("host_key")]);
  await writeFile(at("principals"), principals.map((principal) => `${principal}\n`).join(""));
  await writeFile(at("ca.pub"), "");
  await writeFile(at("krl"), "");
  const lines = [
    `ListenAddress 127.0.0.1:${port}`,
    `HostKey ${at("host_key")}`,
    `PidFile ${at("pid")}`,
    "UsePAM no",
    "StrictModes no",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
    "AuthorizedKeysFile none",
    "LogLevel VERBOSE",
    `TrustedUserCAKeys ${at("ca.pub")}`,
    `RevokedKeys ${at("krl")}`,
    `AuthorizedPrincipalsFile ${at("principals")}`,
    "Subsystem sftp internal-sftp",
  ];
  await writeFile(at("config"), `${lines.join("\n")}\n`);
  await writeFile(at("empty"), "");
  let log = "";
  const child = Bun.spawn([sshServer, "-D", "-e", "-f", at("config")], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stderr) log += decoder.decode(chunk, { stream: true });
  })();
  await until("sshd to listen", () => {
    if (child.exitCode !== null) throw new Error(`sshd ended: ${log}`);
    return log.includes("Server listening");
  });
  return {
    port,
    account,
    directory,
    options: [
      "-F",
      "none",
      "-o",
      `UserKnownHostsFile=${at("empty")}`,
      "-o",
      "StrictHostKeyChecking=no",
      "-o",
      "BatchMode=yes",
      "-o",
      "LogLevel=ERROR",
      "-o",
      "ConnectTimeout=10",
    ],
    forget: () => {
      log = "";
    },
    said: async () => {
      await until("sshd to end the connection", () =>
        /^(Connection|Disconnected|Received disconnect)/m.test(log),
      );
      return log;
    },
    trust: (text) => writeFile(at("ca.pub"), text),
    revoke: (krl) => writeFile(at("krl"), krl),
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await child.exited;
      await reading;
      await rm(directory, { recursive: true, force: true });
    },
  };
}
