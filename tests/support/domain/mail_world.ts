import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, openDatabase } from "../../../drizzle/client.ts";
import * as schema from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { createTestDatabase } from "../database/database.ts";
import { Program } from "../process/program.ts";

const { conversation, incident, individual, participant, participantRole, task, taskAssignee } = schema;

/** The local parts of their addresses. */
export const people = ["zoe", "bob", "carol", "dave", "erin"] as const;
export const addressOf = (name: string) => `${name}@example.com`;

export interface MailWorld {
  db: Database;
  /** Runs `svc <args>` with this mail server. */
  svc(...args: string[]): Program;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A database with two incidents that have had no report for 27 hours. Zoë commands one, in which each of five people has
 * an overdue task; the other has no commander. Both have a conversation by mail.
 */
export async function startMailWorld(mailPort: number): Promise<MailWorld> {
  const cleanUp = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "svc-mail-"));
  cleanUp.defer(() => rm(directory, { recursive: true, force: true }));
  const { url } = cleanUp.use(await createTestDatabase());
  const { db, close } = openDatabase(url, 2);
  cleanUp.defer(close);
  // Half an hour more or less does not change the durations in the texts.
  await insertWorld(db, after(new Date(), -27.5 * 3600));
  const env = {
    PATH: process.env.PATH,
    HOME: directory,
    TZ: "UTC",
    SVC_DATABASE_URL: url,
    SVC_PUBLIC_URL: "https://svc.example.com",
    SVC_PLUGIN_CONVERSATION: "mail",
    SVC_PLUGIN_MAIL_URL: `smtp://127.0.0.1:${mailPort}`,
    SVC_PLUGIN_MAIL_FROM: "Störungsdienst <svc@example.com>",
  };
  return {
    db,
    svc: (...args) => cleanUp.use(new Program(args, { env, cwd: directory })),
    [Symbol.asyncDispose]: () => cleanUp.disposeAsync(),
  };
}

async function insertWorld(db: Database, at: Date): Promise<void> {
  const stamps = { createdAt: at, updatedAt: at };
  const individuals = await db
    .insert(individual)
    .values(
      people.map((key) => ({ name: key === "zoe" ? "Zoë Ångström" : key, email: addressOf(key), ...stamps })),
    )
    .returning({ id: individual.id });
  const [type] = await db
    .insert(schema.incidentType)
    .values({ name: "Outage", ...stamps })
    .returning();
  const [priority] = await db
    .insert(schema.incidentPriority)
    .values({ name: "Hoch", reminderHours: 2, ...stamps })
    .returning();
  const kinds = { incidentTypeId: type!.id, incidentPriorityId: priority!.id };
  for (const title of ["Kühlhaus zu warm – 8 °C 🧊", "Nobody's printer"]) {
    const [made] = await db
      .insert(incident)
      .values({ title, description: "", ...kinds, reportedAt: at, ...stamps })
      .returning({ id: incident.id });
    const incidentId = made!.id;
    await db.insert(conversation).values({ incidentId, pluginSlug: "mail", createdAt: at });
    const participants = await db
      .insert(participant)
      .values(individuals.map(({ id }) => ({ incidentId, individualId: id, joinedAt: at })))
      .returning({ id: participant.id });
    if (title.startsWith("Nobody")) continue;
    const commander = {
      participantId: participants[0]!.id,
      incidentId,
      role: "commander",
      assumedAt: at,
    } as const;
    await db.insert(participantRole).values(commander);
    const tasks = await db
      .insert(task)
      .values(people.map((name) => ({ incidentId, description: `Tür ${name}`, resolveBy: at, ...stamps })))
      .returning({ id: task.id });
    await db
      .insert(taskAssignee)
      .values(tasks.map(({ id }, i) => ({ taskId: id, individualId: individuals[i]!.id })));
  }
}
