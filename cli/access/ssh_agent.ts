import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NotFound, Unavailable } from "../../platform/errors.ts";
import type { SshKeyPair } from "../../platform/ssh/private_key.ts";

/** A private ssh-agent that runs for one command. */
export interface SshAgent extends AsyncDisposable {
  /** For SSH_AUTH_SOCK. */
  socket: string;
  /** Adds a key with its certificate. The agent forgets both after `seconds`. */
  add(key: SshKeyPair, certificate: { certificate: string; comment: string; seconds: number }): Promise<void>;
}

// This shell stops the agent when its input closes, which also happens when this process is killed. It ignores Ctrl-C,
// which is meant for the command.
const guard = `trap '' INT QUIT HUP TERM; echo "$SSH_AGENT_PID"; cat > /dev/null; kill "$SSH_AGENT_PID"; rm -rf -- "$0"`;
const answerMilliseconds = 5000;
const success = 6;

/** @throws NotFound without ssh-agent */
export function requireSshAgent(): void {
  if (Bun.which("ssh-agent") === null)
    throw new NotFound("Command not found: ssh-agent: install the OpenSSH client");
}

/** @throws NotFound without ssh-agent @throws Unavailable if it does not start */
export async function startSshAgent(): Promise<SshAgent> {
  requireSshAgent();
  const directory = await mkdtemp(join(tmpdir(), "svc-"));
  await chmod(directory, 0o700);
  const socket = join(directory, "agent");
  const child = Bun.spawn(["ssh-agent", "-a", socket, "sh", "-c", guard, directory], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  });
  const stop = async () => {
    await child.stdin.end();
    await child.exited;
    await rm(directory, { recursive: true, force: true });
  };
  // The shell prints a line once the agent is listening.
  const { value } = await child.stdout.getReader().read();
  if (value === undefined) {
    await stop();
    throw new Unavailable("ssh-agent did not start");
  }
  return {
    socket,
    add: async (key, certificate) => {
      const { sshAddCertificateMessage } = await import("../../platform/ssh/private_key.ts");
      const answer = await ask(socket, sshAddCertificateMessage(key, certificate));
      if (answer !== success) throw new Unavailable("ssh-agent refused the certificate");
    },
    [Symbol.asyncDispose]: stop,
  };
}

/** Sends a message. @returns the type of the answer, or undefined if there is none */
async function ask(socket: string, message: Uint8Array): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const timer = setTimeout(() => resolve(undefined), answerMilliseconds);
  let received = Buffer.alloc(0);
  const connection = await Bun.connect({
    unix: socket,
    socket: {
      data: (_, data) => {
        received = Buffer.concat([received, data]);
        // The type follows the length.
        if (received.length > 4) resolve(received[4]);
      },
      close: () => resolve(undefined),
      error: () => resolve(undefined),
    },
  });
  connection.write(message);
  const answer = await promise;
  clearTimeout(timer);
  connection.end();
  return answer;
}
