import { existsSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, join } from "node:path";
import { isatty } from "node:tty";
import { SvcError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import { mayPass } from "../client/request.ts";
import { ExitCode, UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import { localTime } from "../when.ts";
import { AccessClient, type Issued, type Lease, targetSeconds, type Wanted } from "./access.ts";
import { CommandKey, type UsedCredential } from "./use.ts";

/** The shortest duration that the server accepts. */
const shortestSeconds = 60;
/** How long before the expiry a lease is renewed at the earliest. */
const renewalSeconds = 600;
const retrySeconds = 15;
/** Credentials of other kinds cannot be extended, and a running command cannot get new ones in its environment. */
const renewableKinds: ReadonlySet<string> = new Set(["database"]);
/** Signals to pass on. A command that gets Ctrl-\ from the terminal receives it twice. */
const forwarded = ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;

/**
 * Runs a command with a credential in its environment, and always revokes the credential afterwards.
 *
 * @throws ExitCode with the exit code of the command, if it is not 0; 126 or 127 if it cannot be started
 */
export async function runWithAccess(
  io: Io,
  { role, command, wanted }: { role: string; command: readonly string[]; wanted: Wanted },
): Promise<void> {
  const [program] = command;
  if (program === undefined) throw new UsageError("no command: add -- COMMAND");
  if (Bun.which(program) === null)
    throw exists(program)
      ? notStarted(io, `Command cannot be executed: ${program}`, 126)
      : notStarted(io, `Command not found: ${program}`, 127);
  const key = new CommandKey();
  const { issued, client } = await AccessClient.within(io, async (client) => ({
    client,
    issued: await client.obtain(role, { ...wanted, renewable: true }, (role) => key.publicKeyFor(role)),
  }));
  /** The leases to revoke at the end. */
  const leases: Lease[] = [issued];
  const over = new AbortController();
  let child: Bun.Subprocess | undefined;
  let received: NodeJS.Signals | undefined;
  const forward = (signal: NodeJS.Signals) => {
    received = signal;
    child?.kill(signal);
  };
  // The terminal sends Ctrl-C to the command, too, and to many programs a second one means "immediately".
  const interrupt = () => [0, 1, 2].some(isatty) || forward("SIGINT");
  process.on("SIGINT", interrupt);
  // Until the access is revoked: a terminal that closes sends SIGHUP twice, and the command exits at the first.
  for (const signal of forwarded) process.on(signal, forward);
  let code: number;
  try {
    await using used = await key.use(io, issued);
    if (received !== undefined) throw new ExitCode(128 + constants.signals[received]);
    child = start(io, command, { ...io.env, ...used.env });
    const renewing = keepRenewed(io, issued, over.signal, async (lease) => {
      const { replace } = used;
      if (replace) return await askAgain(client, leases, { first: issued, key, replace });
      if (!renewableKinds.has(issued.credential.kind)) {
        const end = localTime(lease.expires_at);
        io.stderr.write(`svc: the access ends at ${end}, and cannot be renewed while the command runs\n`);
        return undefined;
      }
      const duration = Math.max(shortestSeconds, lengthOf(issued));
      const path = `/access/leases/${lease.id}/renew`;
      return client.call<Lease>("POST", path, { duration }, { timeout: targetSeconds });
    });
    await child.exited;
    over.abort();
    // A renewal that has begun may still get another lease.
    await renewing;
    code = child.exitCode ?? 128 + (constants.signals[child.signalCode as NodeJS.Signals] ?? 0);
  } finally {
    await Promise.all(leases.map((lease) => client.revoke(lease)));
    process.removeListener("SIGINT", interrupt);
    for (const signal of forwarded) process.removeListener(signal, forward);
  }
  if (code !== 0) throw new ExitCode(code);
}

/** How long a lease was issued for, in seconds. */
const lengthOf = ({ created_at, expires_at }: Lease) =>
  Math.floor((Date.parse(expires_at) - Date.parse(created_at)) / 1000);

/** Whether there is a file of that name, which then cannot be executed. */
function exists(program: string): boolean {
  const directories = program.includes("/") ? [""] : (process.env.PATH ?? "").split(delimiter);
  return directories.some((directory) => existsSync(join(directory, program)));
}

/** @throws ExitCode if it cannot be started, such as a script without its interpreter */
function start(io: Io, command: readonly string[], env: Environment): Bun.Subprocess {
  try {
    return Bun.spawn([...command], { env, stdio: ["inherit", "inherit", "inherit"] });
  } catch (cause) {
    const { code = "unknown" } = cause as NodeJS.ErrnoException;
    const message = `Command cannot be started: ${command[0]} (${code})`;
    throw notStarted(io, message, code === "ENOENT" ? 127 : 126);
  }
}

/** The exit codes are those of shells and of env(1). */
function notStarted({ stderr }: Io, message: string, code: 126 | 127): ExitCode {
  stderr.write(`svc: ${printable(message)}\n`);
  return new ExitCode(code);
}

/** Gets a new certificate for the same key, because a certificate cannot be extended. Stays within the first lease. */
async function askAgain(
  client: AccessClient,
  leases: Lease[],
  {
    first,
    key,
    replace,
  }: { first: Issued; key: CommandKey; replace: NonNullable<UsedCredential["replace"]> },
): Promise<Lease | undefined> {
  const { role, request_id, incident, max_expires_at } = first;
  const left = Math.floor((new Date(max_expires_at).getTime() - client.serverClock.now().getTime()) / 1000);
  if (left < shortestSeconds) return undefined;
  const { default_duration } = await client.role(role);
  const next = await client.issue({
    role,
    public_key: key.publicKey,
    duration: Math.min(left, default_duration),
    ...(request_id === null ? { incident: incident ?? undefined } : { request_id }),
  });
  leases.push(next);
  await replace(next);
  return next;
}

/**
 * Renews a lease before it expires, until `over`. `renew` returns undefined when no further renewal is possible. Stops
 * when the server refuses a renewal. Retries other failures, which it reports once, until the lease has expired. Never
 * throws.
 */
export async function keepRenewed(
  io: Pick<Io, "clock" | "sleep" | "stderr">,
  issued: Lease,
  over: AbortSignal,
  renew: (lease: Lease) => Promise<Lease | undefined>,
): Promise<void> {
  let lease = issued;
  let isFailing = false;
  const left = () => Date.parse(lease.expires_at) - io.clock.now().getTime();
  for (;;) {
    // Early enough for the server or the network to be away for a while.
    const wait = isFailing ? 0 : Math.max(left() / 3, left() - renewalSeconds * 1000);
    await sleep(io, Math.max(wait, retrySeconds * 1000), over);
    if (over.aborted || lease.expires_at >= issued.max_expires_at) return;
    try {
      const renewed = await renew(lease);
      if (!renewed) return;
      lease = renewed;
      isFailing = false;
    } catch (error) {
      if (over.aborted) return;
      const isOver = isRefused(error) || left() <= 0;
      const until = isOver ? "" : `; retrying until ${localTime(lease.expires_at)}`;
      if (isRefused(error) || !isFailing)
        io.stderr.write(`svc: the access could not be renewed: ${(error as Error).message}${until}\n`);
      if (isOver) return;
      isFailing = true;
    }
  }
}

/** Sleeps in short steps, so that it ends soon after a time for which the machine was suspended. */
async function sleep(
  io: Pick<Io, "clock" | "sleep">,
  milliseconds: number,
  over: AbortSignal,
): Promise<void> {
  const end = io.clock.now().getTime() + milliseconds;
  for (let left = milliseconds; left > 0 && !over.aborted && io.clock.now().getTime() < end;) {
    const step = Math.min(left, retrySeconds * 1000);
    await io.sleep(step, over).catch(() => {});
    left -= step;
  }
}

function isRefused(error: unknown): boolean {
  return error instanceof SvcError && !mayPass(error);
}
