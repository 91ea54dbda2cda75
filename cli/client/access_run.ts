import { constants } from "node:os";
import { NotFound } from "../../platform/errors.ts";
import { ExitCode, UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { AccessClient, type Issued, type Lease, type Wanted } from "./access.ts";
import { environmentOf } from "./access_format.ts";
import { request } from "./request.ts";

/** Before it expires; a renewal that fails is tried again as often as there is time. */
const renewalSeconds = 60;
const retrySeconds = 15;
/** Not passed on by who presses keys at a terminal: the command gets them as we do. */
const forwarded = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const;

/**
 * Runs a command with a credential in its environment, and revokes that afterwards, whatever becomes of the command.
 *
 * @throws ExitCode with that of the command, if it is not 0
 */
export async function runWithAccess(
  io: Io,
  {
    role,
    command,
    server,
    wanted,
  }: { role: string; command: readonly string[]; server?: string; wanted: Wanted },
): Promise<void> {
  const [program] = command;
  if (program === undefined) throw new UsageError("name a command after --");
  if (Bun.which(program) === null && !program.includes("/"))
    throw new NotFound(`There is no command ${program}`);
  const { issued, client } = await AccessClient.within(io, server, async (client) => ({
    ...{ client, issued: await client.obtain(role, wanted) },
  }));
  const over = new AbortController();
  // Ctrl-C is for the command; we wait for its end.
  const ignore = () => {};
  process.on("SIGINT", ignore).on("SIGQUIT", ignore);
  let code: number;
  try {
    const child = Bun.spawn([...command], {
      env: { ...io.env, ...environmentOf(issued) },
      stdio: ["inherit", "inherit", "inherit"],
    });
    const forwards = forwarded.map((signal) => {
      const forward = () => child.kill(signal);
      process.on(signal, forward);
      return () => process.removeListener(signal, forward);
    });
    void keepRenewed(io, client, issued, over.signal);
    await child.exited;
    for (const stop of forwards) stop();
    code = child.exitCode ?? 128 + (constants.signals[child.signalCode as NodeJS.Signals] ?? 0);
  } finally {
    over.abort();
    await revoke(io, client, issued);
    process.removeListener("SIGINT", ignore).removeListener("SIGQUIT", ignore);
  }
  if (code !== 0) throw new ExitCode(code);
}

/** By a request of its own: that of the session may have been interrupted. */
async function revoke(io: Io, { session }: AccessClient, { id }: Issued): Promise<void> {
  const { server, token } = session;
  const headers = { authorization: `Bearer ${token.token}` };
  const url = `${server.base}/access/leases/${id}`;
  const failed = await request(io, server, url, { method: "DELETE", headers }).then(
    ({ status }) => (status < 400 ? undefined : `HTTP ${status}`),
    (error: Error) => error.message,
  );
  if (failed !== undefined)
    io.stderr.write(`svc: the access could not be revoked (${failed}): svc access revoke ${id}\n`);
}

async function keepRenewed(io: Io, client: AccessClient, issued: Lease, over: AbortSignal): Promise<void> {
  let { expires_at: expiresAt } = issued;
  for (;;) {
    const left = new Date(expiresAt).getTime() - io.clock.now().getTime();
    const wait = Math.max(left - renewalSeconds * 1000, retrySeconds * 1000);
    await io.sleep(wait, over).catch(() => {});
    if (over.aborted || expiresAt >= issued.max_expires_at) return;
    try {
      const lease = await client.call<Lease>("POST", `/access/leases/${issued.id}/renew`, undefined, 45);
      expiresAt = lease.expires_at;
    } catch (error) {
      if (over.aborted) return;
      io.stderr.write(`svc: the access could not be renewed: ${(error as Error).message}\n`);
      if (new Date(expiresAt) <= io.clock.now()) return;
    }
  }
}
