import { asc, sql } from "drizzle-orm";
import { taskColumns } from "../../../core/incident/task/task.ts";
import type { DocumentTask } from "../../../core/plugin.ts";
import * as schema from "../../../drizzle/schema/index.ts";
import { fakeConversation, fakeDocument } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { incidentTaskSync } from "../../../worker/tasks/incident-task-sync.ts";
import { startTaskTest, type TaskTest } from "./scheduled_task.ts";

const { conversation, delivery, document, event, incident, task } = schema;

/** A test with a fake conversation plugin, and with documents of the plugin `wiki`. */
export interface TaskSyncTest extends TaskTest {
  /** Deletes all incidents and everything that belongs to them. */
  clear(): Promise<void>;
  addIncident(status?: "Active" | "Stable" | "Closed"): Promise<number>;
  addDocument(incidentId: number, more?: Partial<typeof document.$inferInsert>): Promise<number>;
  /** Runs incident-task-sync with this wiki. */
  sync(
    wiki: ReturnType<typeof fakeDocument>,
    more?: Parameters<TaskTest["run"]>[2],
  ): ReturnType<TaskTest["run"]>;
  /** One line for each task, oldest first. */
  tasks(): Promise<string[]>;
  /** The events of all timelines, as `actor source: description`. */
  told(): Promise<string[]>;
  /** The subjects of the waiting messages. */
  enqueued(): Promise<string[]>;
}

/** A task in a plugin's answer. */
export const foundTask = (
  externalId: string,
  description: string,
  more: Partial<DocumentTask> = {},
): DocumentTask => ({ externalId, description, status: "Open", assignees: [], ...more });

/** A wiki that returns these answers in turn, each with the next cursor. */
export function wikiOf(...answers: DocumentTask[][]) {
  return fakeDocument(
    { tasks: answers.map((tasks, at) => () => ({ tasks, cursor: `c${at + 1}`, complete: true })) },
    { slug: "wiki" },
  );
}

export async function startTaskSyncTest(): Promise<TaskSyncTest> {
  const its = await startTaskTest();
  const { db, clock } = its;
  const stamps = () => ({ createdAt: clock.now(), updatedAt: clock.now() });
  const [type] = await db
    .insert(schema.incidentType)
    .values({ name: "Outage", ...stamps() })
    .returning();
  const [priority] = await db
    .insert(schema.incidentPriority)
    .values({ name: "High", rank: 3, reminderHours: 2, ...stamps() })
    .returning();
  const kinds = { incidentTypeId: type!.id, incidentPriorityId: priority!.id };
  const chat = fakeConversation();
  return {
    ...its,
    clear: async () => void (await db.execute(sql`truncate incident, document, individual cascade`)),
    addIncident: async (status = "Active") => {
      const at = clock.now();
      const ends = { stableAt: status === "Active" ? null : at, closedAt: status === "Closed" ? at : null };
      const [row] = await db
        .insert(incident)
        .values({
          title: "Disk full",
          description: "",
          status,
          reportedAt: at,
          ...kinds,
          ...ends,
          ...stamps(),
        })
        .returning({ id: incident.id });
      const incidentId = row!.id;
      await db.insert(conversation).values({ incidentId, pluginSlug: chat.plugin.slug, createdAt: at });
      return incidentId;
    },
    addDocument: async (incidentId, more = {}) => {
      const place = { pluginSlug: "wiki", resourceId: crypto.randomUUID(), resourceType: "incident" };
      const [row] = await db
        .insert(document)
        .values({ name: "Notes", incidentId, ...place, ...stamps(), ...more })
        .returning({ id: document.id });
      return row!.id;
    },
    sync: (wiki, more) => its.run(incidentTaskSync, pluginsOf(wiki, chat), more),
    tasks: async () => {
      const rows = await db
        .select({ ...taskColumns, deletedAt: task.deletedAt })
        .from(task)
        .orderBy(asc(task.id));
      return rows.map(({ description, status, owner, assignees, version, deletedAt }) =>
        [
          `${description}, ${status}, version ${version}`,
          ...(owner ? [`owner ${owner.name}`] : []),
          ...(assignees.length > 0 ? [`for ${assignees.map(({ name }) => name).join(" and ")}`] : []),
          ...(deletedAt ? ["gone"] : []),
        ].join(", "),
      );
    },
    told: async () => {
      const rows = await db.select().from(event).orderBy(asc(event.id));
      return rows.map(({ actor, source, description }) => `${actor} ${source}: ${description}`);
    },
    enqueued: async () => {
      const rows = await db.select().from(delivery).orderBy(asc(delivery.key));
      return rows.map(({ subject }) => subject.replace(/^INC-\d+: /, ""));
    },
  };
}
