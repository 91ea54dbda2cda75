import { Conflict } from "../../platform/errors.ts";
import { ExplainedConflict, UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import { roles } from "./args.ts";
import { IncidentClient, type IncidentDetail, type Participant } from "./incident.ts";
import { emailOf } from "./people.ts";
import { againLine, done, eachInTurn, type IdOptions, idOf, splitWords, type WordOptions } from "./write.ts";

/** `svc incident join` */
export async function joinCommand(options: IdOptions & { role?: string }, io: Io) {
  const { role, json } = options;
  const id = idOf(options);
  const { incident, answer } = await IncidentClient.within(io, async (client) => {
    const incident = await client.resolve(id);
    const user = await client.user();
    const known = already(io, await client.participants(incident), incident, user, role, "you");
    return { incident, answer: known ?? (await invite(client, incident, user, role)) };
  });
  done(io, incident, json, answer);
}

/** `svc incident leave` */
export async function leaveCommand(options: IdOptions, io: Io) {
  const { json } = options;
  const id = idOf(options);
  const { incident, answer } = await IncidentClient.within(io, async (client) => {
    const incident = await client.resolve(id);
    return { incident, answer: await end(client, incident, await client.user(), "you") };
  });
  done(io, incident, json, answer);
}

/** `svc incident add` and `remove` */
export async function peopleCommand(
  verb: "add" | "remove",
  options: WordOptions & { role?: string },
  io: Io,
): Promise<void> {
  const { role, json } = options;
  const { incident: typed, words } = splitWords(options, `${verb} USER`);
  if (words.length === 0) throw new UsageError("missing argument: USER");
  const { incident, items } = await IncidentClient.within(io, async (client) => {
    const incident = await client.resolve(typed);
    // All are looked up before anyone is added, so a typing error changes nothing.
    const emails: string[] = [];
    for (const word of words) emails.push(await emailOf(io, client, word));
    const participants = await client.participants(incident);
    if (verb === "remove") for (const email of emails) foundIn(participants, incident, email);
    const did = verb === "add" ? "were added" : "were removed";
    const items = await eachInTurn(io, incident, did, [...new Set(emails)], async (email) => {
      if (verb === "remove") return end(client, incident, email);
      return already(io, participants, incident, email, role) ?? invite(client, incident, email, role);
    });
    return { incident, items };
  });
  done(io, incident, json, { items });
}

/** `svc incident role take`, `give` and `drop` */
export async function roleCommand(
  verb: "take" | "give" | "drop",
  options: WordOptions,
  io: Io,
): Promise<void> {
  const { json } = options;
  const { incident: typed, words } = splitWords(options, `role ${verb} USER`, verb !== "give");
  const [user, typedRole, ...more] = verb === "give" ? words : [undefined, ...words];
  if (verb === "give" && user === undefined) throw new UsageError("missing argument: USER");
  if (more.length > 0) throw new UsageError(`unexpected argument: ${more[0]}`);
  const role = parseRole(typedRole ?? "commander");
  const { incident, answer } = await IncidentClient.within(io, async (client) => {
    const incident = await client.resolve(typed);
    const email = user === undefined ? await client.user() : await emailOf(io, client, user);
    const answer =
      verb === "drop"
        ? await renounce(client, incident, email, role)
        : await assume(io, client, incident, email, role, user === undefined ? "you" : undefined);
    return { incident, answer };
  });
  done(io, incident, json, answer);
}

function parseRole(text: string): string {
  const role = roles.find((one) => one === text.toLowerCase());
  if (role === undefined)
    throw new UsageError(`"${printable(text, 60)}" is not a role: it is one of ${roles.join(", ")}`);
  return role;
}

/** Gives a role to somebody, who joins first if necessary. A new commander replaces the current one. */
async function assume(
  io: Io,
  client: IncidentClient,
  incident: IncidentDetail,
  email: string,
  role: string,
  who?: "you",
) {
  const participants = await client.participants(incident);
  const known = already(io, participants, incident, email, role, who);
  if (known) return known;
  const found = participants.find((one) => isPerson(one, email));
  const commander = participants.find((one) => has(one, "commander"));
  const isHandover = role === "commander" && commander !== undefined && commander !== found;
  if (found === undefined && !isHandover) return invite(client, incident, email, role);
  const { id } = found ?? (await invite(client, incident, email));
  const body = { role, ...(isHandover ? { replaces: commander.id } : {}) };
  try {
    return await client.post<Participant>(`/incidents/${incident.id}/participants/${id}/roles`, body);
  } catch (error) {
    if (!(error instanceof Conflict)) throw error;
    // Somebody else was faster.
    const now = await client.participants(incident);
    const done = already(io, now, incident, email, role, who);
    if (done) return done;
    const holder = now.find((one) => has(one, "commander"));
    if (!isHandover || holder === undefined || holder.id === commander.id) throw error;
    throw new ExplainedConflict(
      `${printable(holder.individual.email, 200)} has taken command of ${incident.name} in the meantime; nothing was changed`,
      `To replace them: ${againLine(io, who ? ["role", "take", incident.name] : ["role", "give", incident.name, email])}`,
      [],
      { cause: error },
    );
  }
}

async function renounce(client: IncidentClient, incident: IncidentDetail, email: string, role: string) {
  const { id, roles } = foundIn(await client.participants(incident), incident, email, "you");
  if (!has({ roles }, role)) throw new Conflict(`you are not ${role} of ${incident.name}`);
  return client.post<Participant>(`/incidents/${incident.id}/participants/${id}/renounce`, { role });
}

/** Returns somebody who takes part already, or with a role, who has it already, and says so. */
function already(
  { stderr }: Io,
  participants: readonly Participant[],
  { name }: IncidentDetail,
  email: string,
  role?: string,
  who?: "you",
): Participant | undefined {
  const found = participants.find((one) => isPerson(one, email));
  if (found === undefined || (role !== undefined && !has(found, role))) return undefined;
  const shown = printable(email, 200);
  if (role === undefined)
    stderr.write(`${who ? "You already take" : `${shown} already takes`} part in ${name}\n`);
  else stderr.write(`${who ? "You are" : `${shown} is`} already ${role} of ${name}\n`);
  return found;
}

function has({ roles }: Pick<Participant, "roles">, wanted: string): boolean {
  return roles.some(({ role, renounced_at }) => role === wanted && renounced_at === null);
}

async function invite(client: IncidentClient, { id }: { id: number }, email: string, role?: string) {
  const body = { email, ...(role === undefined ? {} : { roles: [role] }) };
  return client.post<Participant>(`/incidents/${id}/participants`, body);
}

async function end(client: IncidentClient, incident: IncidentDetail, email: string, who?: "you") {
  const found = foundIn(await client.participants(incident), incident, email, who);
  if (has(found, "commander")) {
    const shown = who ? "you command" : `${printable(email, 200)} commands`;
    throw new Conflict(
      `${shown} ${incident.name}: first hand over, with svc incident role give -i ${incident.name} USER`,
    );
  }
  return client.post<Participant>(`/incidents/${incident.id}/participants/${found.id}/leave`, undefined);
}

/** @throws Conflict if they do not take part */
function foundIn(
  participants: readonly Participant[],
  incident: IncidentDetail,
  email: string,
  who?: "you",
): Participant {
  const found = participants.find((one) => isPerson(one, email));
  if (found !== undefined) return found;
  throw new Conflict(`${who ? "you do" : `${printable(email, 200)} does`} not take part in ${incident.name}`);
}

function isPerson({ individual }: Participant, email: string): boolean {
  return individual.email.toLowerCase() === email.toLowerCase();
}
