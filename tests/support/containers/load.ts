import { join } from "node:path";
import { eq } from "drizzle-orm";
import { openDatabase } from "../../../drizzle/client.ts";
import { conversation } from "../../../drizzle/schema/index.ts";
import { until } from "../process/until.ts";

/** The conversations of each incident, as set in compose.load.yaml: one within svc, and one outside. */
export const conversations = ["channel", "webhook"];

/** The number of clients. The first one reports incidents, which causes much more work than a note. */
const clients = 13;
const reportMilliseconds = 700;
/** Short, so that connections are almost always in use. */
const noteMilliseconds = 20;
const againMilliseconds = 150;
const deliverProgram = join(import.meta.dir, "deliver_program.ts");
/** The time that a client waits for an answer, and the time that a retrying client repeats a request. */
const patienceSeconds = 120;

export interface Target {
  /** The published address. */
  url: string;
  databaseUrl: string;
  token: string;
  /** Whether a client retries failed requests with the same Idempotency-Key. */
  insistent?: boolean;
  /** A request that takes longer fails. */
  mostSeconds?: number;
}

/**
 * Simulated load: clients that report incidents, add notes to timelines and read them again, half of them on persistent
 * connections; and a few messages a second. It records what was acknowledged.
 */
export class Load implements AsyncDisposable {
  /** Requests with a wrong answer, each with the time at which it began. */
  readonly failures: string[] = [];
  readonly acknowledged = { incidents: [] as string[], notes: [] as string[], deliveries: [] as string[] };
  /** Answers of any kind. */
  answered = 0;
  readonly #stopped = new AbortController();
  readonly #work: Promise<void>[] = [];
  readonly #pending = new Set<Promise<unknown>>();
  /** Distinguishes the records of several loads in one database. */
  readonly #name = `load ${crypto.randomUUID().slice(0, 8)}`;
  private constructor(
    private readonly target: Target,
    private readonly kind: { incident_type_id: number; incident_priority_id: number },
    private readonly incidentId: number,
  ) {}

  get databaseUrl(): string {
    return this.target.databaseUrl;
  }

  /** Starts after creating an incident and waiting until its conversations are open. */
  static async start(target: Target): Promise<Load> {
    const idIn = async (path: string, options?: AskOptions) => {
      const answer = await ask(target, path, options);
      const { id, items } = Object(answer.body) as { id?: number; items?: { id: number }[] };
      const found = id ?? items?.[0]?.id;
      if (found === undefined) throw new Error(`${target.url}${path} answered ${JSON.stringify(answer)}`);
      return found;
    };
    const kind = {
      incident_type_id: await idIn("/incident_types/"),
      incident_priority_id: await idIn("/incident_priorities/"),
    };
    const body = { title: "The first", description: "", visibility: "Open", ...kind };
    const load = new Load(target, kind, await idIn("/incidents/", { body }));
    const { db, close } = openDatabase(target.databaseUrl, 1);
    const opened = async () => {
      const { incidentId } = load;
      const open = await db.select().from(conversation).where(eq(conversation.incidentId, incidentId));
      return open.length === conversations.length;
    };
    await until("its conversations", opened, patienceSeconds);
    await close();
    load.#work.push(load.#deliver(), ...Array.from({ length: clients }, (_, at) => load.#client(at)));
    return load;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#work);
  }

  /** Waits until this many more requests were answered. */
  async more(answers: number): Promise<void> {
    const before = this.answered;
    await until(`${answers} more answers`, () => this.answered >= before + answers, 2 * patienceSeconds);
  }

  /** Waits until all requests that are pending now have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #client(at: number): Promise<void> {
    const keepalive = at % 2 === 0;
    for (let n = 0; !this.#stopped.signal.aborted; n++) {
      const text = `${this.#name}, client ${at}, number ${n}`;
      if (at === 0) {
        const body = { title: text, description: "", visibility: "Open", ...this.kind };
        if (await this.#post("/incidents/", body, keepalive)) this.acknowledged.incidents.push(text);
      } else {
        const path = `/incidents/${this.incidentId}/events/`;
        if (await this.#post(path, { description: text }, keepalive)) this.acknowledged.notes.push(text);
        await this.#attempt(`/incidents/${this.incidentId}`, { keepalive }, 200);
      }
      await Bun.sleep(at === 0 ? reportMilliseconds : noteMilliseconds);
    }
  }

  async #post(path: string, body: object, keepalive: boolean): Promise<boolean> {
    const key = crypto.randomUUID();
    const deadline = performance.now() + patienceSeconds * 1000;
    for (;;) {
      if (await this.#attempt(path, { body, keepalive, key }, 201)) return true;
      if (!this.target.insistent || performance.now() > deadline) return false;
      await Bun.sleep(againMilliseconds);
    }
  }

  async #attempt(path: string, options: AskOptions, wanted: number): Promise<boolean> {
    const began = new Date().toISOString();
    const start = performance.now();
    const asked = ask(this.target, path, options).catch((error: Error & { code?: string }) => error);
    this.#pending.add(asked);
    const answer = await asked;
    this.#pending.delete(asked);
    if (!(answer instanceof Error)) this.answered += 1;
    if (!(answer instanceof Error) && answer.status === wanted) return true;
    const what = answer instanceof Error ? (answer.code ?? answer.message) : JSON.stringify(answer);
    const took = Math.round(performance.now() - start);
    this.failures.push(`${began} ${options.body ? "POST" : "GET"} ${path}: after ${took} ms, ${what}`);
    return false;
  }

  async #deliver(): Promise<void> {
    const { deliveries } = this.acknowledged;
    while (!this.#stopped.signal.aborted) {
      const args = [String(this.incidentId), this.#name, String(deliveries.length)];
      const child = Bun.spawn([process.execPath, deliverProgram, ...args], {
        env: { ...process.env, SVC_DATABASE_URL: this.target.databaseUrl },
        stdio: ["ignore", "pipe", "ignore"],
        signal: this.#stopped.signal,
      });
      const lines = (await new Response(child.stdout).text()).split("\n").filter(Boolean);
      deliveries.push(...lines);
    }
  }
}

interface AskOptions {
  /** Makes it a POST. */
  body?: object;
  keepalive?: boolean;
  key?: string;
}

async function ask(
  { url, token, mostSeconds = patienceSeconds }: Target,
  path: string,
  { body, keepalive = false, key }: AskOptions = {},
) {
  const response = await fetch(url + path, {
    method: body ? "POST" : "GET",
    headers: {
      authorization: `Bearer ${token}`,
      ...(body ? { "content-type": "application/json" } : {}),
      ...(key ? { "idempotency-key": key } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
    keepalive,
    tls: { rejectUnauthorized: false },
    signal: AbortSignal.timeout(mostSeconds * 1000),
  });
  const text = await response.text();
  return { status: response.status, body: text.startsWith("{") ? (JSON.parse(text) as unknown) : text };
}
