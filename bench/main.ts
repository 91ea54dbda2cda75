import { awaitStop } from "../cli/up/signals.ts";
import { BenchError, describeMachine } from "./support.ts";

/** A benchmark. It registers everything it starts in `parts`, in starting order. */
export type Bench = (parts: AsyncDisposableStack) => Promise<void>;

const benches: Record<string, { about: string; load: () => Promise<Bench> }> = {
  aws: {
    about: "svc access get --format aws from its cache against svc --version (15 seconds)",
    load: async () => (await import("./access/aws.ts")).benchCachedCredential,
  },
  poll: {
    about: "pending polls a second: svc, oidc-provider's device grant, a bare Bun.serve (2 minutes)",
    load: async () => (await import("./poll.ts")).benchPoll,
  },
  login: {
    about: "from the Approve click to the exit of svc login: held poll, 2 s poll (2 minutes)",
    load: async () => (await import("./login.ts")).benchLogin,
  },
  migrate: {
    about:
      "200 revisions, nothing to do, four at once: svc, Alembic, dbmate, drizzle's migrate(); then backup (15 minutes)",
    load: async () => {
      const [{ benchMigrate }, { benchBackup }] = await Promise.all([
        import("./migrate.ts"),
        import("./backup.ts"),
      ]);
      return async (parts) => {
        await benchMigrate(parts);
        await benchBackup(parts);
      };
    },
  },
  backup: {
    about:
      "dump and restore of 1 GB: svc, pg_dump and pg_restore alone (10 minutes; SVC_BENCH_GB for another size)",
    load: async () => (await import("./backup.ts")).benchBackup,
  },
  api: {
    about:
      "list, detail, search, create among 100,000 incidents: svc, FastAPI (6 minutes; SVC_BENCH_INCIDENTS for fewer)",
    load: async () => (await import("./api.ts")).benchApi,
  },
  schedule: {
    about:
      "lateness of a 1 s period: svc, graphile-worker, pg-boss; claims, takeover, memory, costs, terms (11 minutes; SVC_BENCH_SECONDS for shorter rounds)",
    load: async () => (await import("./schedule.ts")).benchSchedule,
  },
  server: {
    about:
      "/healthcheck and a document: svc, uvicorn with FastAPI, a bare Bun.serve; start, memory (5 minutes)",
    load: async () => (await import("./server.ts")).benchServer,
  },
  scale: {
    about:
      "/healthcheck and a document by 1, 2 and 4 server containers; needs Docker (6 minutes; SVC_BENCH_SECONDS for shorter rounds)",
    load: async () => (await import("./scale.ts")).benchScale,
  },
  access: {
    about:
      "issue and revoke a role: svc, the SQL alone; 1,000 leases that expire at once; SSH certificates: svc, ssh-keygen -s; a cached AWS session (4 minutes)",
    load: async () => {
      const [{ benchLeases }, { benchSshCertificates }, { benchCachedCredential }] = await Promise.all([
        import("./access/leases.ts"),
        import("./access/ssh.ts"),
        import("./access/aws.ts"),
      ]);
      return async (parts) => {
        await benchLeases(parts);
        await benchSshCertificates(parts);
        await benchCachedCredential(parts);
      };
    },
  },
  mtls: {
    about:
      "requests and handshakes over mutual TLS: svc, Bun's own TLS, HAProxy with a header; 5,000 idle connections (5 minutes)",
    load: async () => (await import("./mtls.ts")).benchMtls,
  },
  live: {
    about:
      "streams: memory of 10,000 watchers, delay, messages a second against a bare Bun.serve, writes with and without; then incident (5 minutes; SVC_BENCH_WATCHERS, SVC_BENCH_SECONDS for less)",
    load: async () => {
      const [{ benchLiveServer }, { benchLiveClient }] = await Promise.all([
        import("./live/server.ts"),
        import("./live_client.ts"),
      ]);
      return async (parts) => {
        await benchLiveServer(parts);
        await benchLiveClient(parts);
      };
    },
  },
  incident: {
    about: "svc incident list against svc --version, svc incident view against gh issue view (20 seconds)",
    load: async () => (await import("./live_client.ts")).benchLiveClient,
  },
  web: {
    about:
      "pages: first byte and size among 100,000 incidents; an incident's page a second: svc, SvelteKit; a change on 1,000 open pages (9 minutes; SVC_BENCH_INCIDENTS, SVC_BENCH_SECONDS for less)",
    load: async () => (await import("./web.ts")).benchWeb,
  },
  token: {
    about: "from a revocation on one server to its effect on another, p50 and p99 (20 seconds)",
    load: async () => (await import("./token.ts")).benchToken,
  },
  all: {
    about: "most of them, shorter, and then every ratio on one page (20 minutes)",
    load: async () => benchAll,
  },
  start: {
    about: "svc --version against gh --version (10 seconds)",
    load: async () => (await import("./start.ts")).benchStart,
  },
};

/** Shorter than alone, so that all of them take less than 20 minutes. `migrate`, `scale`, `mtls` and `live` are left out. */
const shorter: Record<string, Record<string, string>> = {
  start: {},
  incident: {},
  token: {},
  poll: {},
  server: {},
  api: { SVC_BENCH_INCIDENTS: "20000" },
  schedule: { SVC_BENCH_SECONDS: "6" },
  web: { SVC_BENCH_INCIDENTS: "5000", SVC_BENCH_SECONDS: "1" },
  access: { SVC_BENCH_SECONDS: "2" },
  backup: { SVC_BENCH_GB: "0.1" },
};

/** Runs most benches, each in a process of its own, and then prints every line that has an aim or a budget. */
async function benchAll(): Promise<void> {
  const pages: string[] = [];
  for (const [name, more] of Object.entries(shorter)) {
    console.log(`\n# ${name}`);
    const child = Bun.spawn([process.execPath, ...process.execArgv, import.meta.path, name], {
      env: { ...process.env, ...more },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      process.stdout.write(chunk);
      text += chunk;
    }
    const lines = text.split("\n").filter((line) => /\b(aim|budget): /.test(line));
    const end = (await child.exited) === 0 ? [] : ["it failed"];
    pages.push([`# ${name}`, ...lines, ...end].join("\n"));
  }
  console.log(`\n${"=".repeat(80)}\n${pages.join("\n\n")}`);
}

const usage = [
  "Usage: bun run bench <name>",
  "",
  ...Object.entries(benches).map(([name, { about }]) => `  ${name.padEnd(9)}${about}`),
  "",
  "Results are meaningful only on an otherwise idle machine. A bench stops everything that it starts.",
].join("\n");

async function main(args: string[]): Promise<number> {
  if (args.some((word) => word === "--help" || word === "-h")) {
    console.log(usage);
    return 0;
  }
  const [name = "", ...rest] = args;
  const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
  if (!bench || rest.length > 0) {
    const fault =
      name === ""
        ? "expected the name of a bench"
        : bench
          ? `unexpected argument "${rest[0]}"`
          : `no bench "${name}"`;
    console.error(`bench: ${fault}\n\n${usage}`);
    return 2;
  }
  using stop = awaitStop({ SVC_END_WITH: process.env.SVC_END_WITH });
  await using parts = new AsyncDisposableStack();
  console.log(describeMachine());
  const measured = bench.load().then((run) => run(parts));
  // After a stop it fails because its parts have ended, which needs no report.
  measured.catch(() => {});
  const interrupted = await Promise.race([measured, stop.reason]);
  return interrupted ? 130 : 0;
}

try {
  process.exit(await main(process.argv.slice(2)));
} catch (error) {
  console.error(error instanceof BenchError ? `bench: ${error.message}` : error);
  process.exit(1);
}
