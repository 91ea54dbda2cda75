import * as schema from "../../../drizzle/schema/index.ts";
import { conversation, conversationMessage } from "../../../drizzle/schema/index.ts";
import { insertRow } from "./catalog.ts";
import type { Visibility } from "./participants.ts";
import { type Person, personOf } from "./people.ts";
import type { Role } from "./permissions.ts";
import type { TestServer } from "./server.ts";

/** An incident with a record of every kind, each of which contains `word`, and people for requests. */
export interface Place {
  visibility: Visibility;
  word: string;
  /** A linked Open incident: a new one, unless `newPlace` received one. */
  linkedId: number;
  linkedTitle: string;
  linkId: number;
  incidentId: number;
  documentId: number;
  taskId: number;
  reportId: number;
  /** A note. */
  eventId: number;
  /** A participant who is scribe. The next one has left. */
  scribeId: number;
  leftId: number;
  /** An individual who is not a participant. */
  outsiderId: number;
  /** A participant who appears only in this incident, with the name `word`. */
  onlyHere: { individualId: number; email: string };
}

export interface World {
  server: TestServer;
  typeId: number;
  priorityId: number;
  /** An Open incident without these people. */
  openId: number;
  /** The people with each role. Former participants are members. */
  people: Record<Role, Person[]>;
  admin: Person;
  /** A number that no other cell uses. */
  next(): number;
  /** Signs in the first person with the role again. */
  signIn(role: Role): Promise<Person>;
  newPlace(visibility: Visibility, linkedId?: number): Promise<Place>;
}

export const users: Record<Role, [user: string | undefined, groups: string[]][]> = {
  nobody: [[undefined, []]],
  member: [
    ["member@example.com", ["oncall"]],
    ["former@example.com", []],
  ],
  participant: [["participant@example.com", []]],
  admin: [["root@example.com", ["admin"]]],
};

export async function createWorld(server: TestServer): Promise<World> {
  const { db } = server;
  const typeId = await insertRow(db, schema.incidentType, { name: "Outage" });
  const priorityId = await insertRow(db, schema.incidentPriority, { name: "Urgent", reminderHours: 2 });
  const individuals: Record<string, number> = {};
  for (const name of ["participant", "former", "commander", "scribe", "left", "outsider"]) {
    const values = { name, email: `${name}@example.com` };
    individuals[name] = await insertRow(db, schema.individual, values);
  }
  const signIn = (role: Role, which = 0) => {
    const [user, groups] = users[role][which]!;
    return personOf(server, user, groups);
  };
  const people = {} as World["people"];
  for (const role of Object.keys(users) as Role[]) {
    people[role] = [];
    for (const which of users[role].keys()) people[role].push(await signIn(role, which));
  }
  let n = 0;
  const open = { title: "Elsewhere", description: "", reportedAt: server.clock.now() };
  const openId = await insertRow(db, schema.incident, {
    ...open,
    incidentTypeId: typeId,
    incidentPriorityId: priorityId,
  });
  return {
    server,
    typeId,
    priorityId,
    openId,
    people,
    admin: people.admin[0]!,
    signIn,
    next: () => ++n,
    newPlace: (visibility, linkedId) =>
      insertPlace(server, visibility, { typeId, priorityId, individuals, n: ++n, linkedId }),
  };
}

async function insertPlace(
  { db, clock }: TestServer,
  visibility: Visibility,
  of: {
    typeId: number;
    priorityId: number;
    individuals: Record<string, number>;
    n: number;
    linkedId?: number;
  },
): Promise<Place> {
  const { individuals } = of;
  const at = clock.now();
  const word = `zebra${String(of.n).padStart(5, "0")}`;
  const kind = { incidentTypeId: of.typeId, incidentPriorityId: of.priorityId };
  const incidentId = await insertRow(db, schema.incident, {
    title: word,
    description: word,
    visibility,
    reportedAt: at,
    ...kind,
  });
  const takesPart = async (name: string, leftAt: Date | null = null) => {
    const individualId = individuals[name]!;
    const values = { incidentId, individualId, joinedAt: at, leftAt };
    const [row] = await db.insert(schema.participant).values(values).returning();
    return row!.id;
  };
  await takesPart("participant");
  await takesPart("former", at);
  const leftId = await takesPart("left", at);
  const commanderId = await takesPart("commander");
  const scribeId = await takesPart("scribe");
  await db.insert(schema.participantRole).values([
    { participantId: commanderId, incidentId, role: "commander", assumedAt: at },
    { participantId: scribeId, incidentId, role: "scribe", assumedAt: at },
  ]);
  const email = `person-${of.n}@example.com`;
  const onlyHereId = await insertRow(db, schema.individual, { name: word, email, listed: false });
  await db.insert(schema.participant).values({ incidentId, individualId: onlyHereId, joinedAt: at });
  const documentId = await insertRow(db, schema.document, {
    name: word,
    description: word,
    incidentId,
    resourceType: "reference",
    pluginSlug: "markdown",
    resourceId: word,
  });
  const hash = new Bun.CryptoHasher("sha256").update(word).digest();
  await db.insert(schema.documentContent).values({ documentId, content: word, hash, updatedAt: at });
  const taskId = await insertRow(db, schema.task, {
    incidentId,
    description: word,
    ownerId: individuals.scribe,
    resolveBy: new Date(at.getTime() - 1),
  });
  await db.insert(schema.taskAssignee).values({ taskId, individualId: individuals.scribe! });
  // One word, so that nobody finds the service with those of the incident.
  const serviceId = await insertRow(db, schema.service, { name: `affected${word}` });
  await db.insert(schema.incidentService).values({ incidentId, serviceId });
  const linkedId =
    of.linkedId ??
    (await insertRow(db, schema.incident, {
      title: `linked-${of.n}`,
      description: "",
      visibility: "Open",
      reportedAt: at,
      ...kind,
    }));
  const [link] = await db
    .insert(schema.incidentLink)
    .values({ incidentId, linkedId, kind: "related", createdAt: at })
    .returning();
  const [report] = await db
    .insert(schema.statusReport)
    .values({
      incidentId,
      authorId: individuals.commander!,
      createdAt: at,
      conditions: word,
      actions: "",
      needs: "",
    })
    .returning();
  const [note] = await db
    .insert(schema.event)
    .values({ incidentId, at, actor: "system", source: "core", kind: "note", description: word })
    .returning();
  const [channel] = await db
    .insert(conversation)
    .values({ incidentId, pluginSlug: "channel", createdAt: at })
    .returning();
  await db
    .insert(conversationMessage)
    .values({ conversationId: channel!.id, at, text: word, authorId: individuals.scribe });
  return {
    visibility,
    word,
    incidentId,
    documentId,
    taskId,
    reportId: report!.id,
    eventId: note!.id,
    scribeId,
    leftId,
    linkedId,
    linkedTitle: `linked-${of.n}`,
    linkId: link!.id,
    outsiderId: individuals.outsider!,
    onlyHere: { individualId: onlyHereId, email },
  };
}

/** The same place with ids that do not exist. */
export function nowhere(place: Place): Place {
  const free = 900_000_000;
  return {
    ...place,
    incidentId: free + 1,
    documentId: free + 2,
    taskId: free + 3,
    reportId: free + 4,
    scribeId: free + 5,
    leftId: free + 6,
    eventId: free + 8,
    onlyHere: { individualId: free + 7, email: "person@nowhere.example" },
  };
}
