import { Conflict } from "../../platform/errors.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import { IncidentClient, type IncidentDetail, type Participant } from "./incident.ts";
import { emailOf } from "./incident_people.ts";
import { done, splitWords } from "./incident_write.ts";

export interface PeopleOptions {
  words?: string[];
  incident?: string;
  role?: string;
  server?: string;
  json?: boolean;
}

export const roles = ["commander", "scribe", "liaison", "participant", "reporter", "observer"] as const;

/** `svc incident join` */
export async function joinCommand(
  options: { id?: string; role?: string; server?: string; json?: boolean },
  io: Io,
) {
  const { id, role, server, json } = options;
  const { incident, answer } = await IncidentClient.within(io, server, async (client) => {
    const incident = await client.resolve(id);
    return { incident, answer: await invite(client, incident, await client.user(), role) };
  });
  done(io, incident, json, answer);
}

/** `svc incident leave` */
export async function leaveCommand(options: { id?: string; server?: string; json?: boolean }, io: Io) {
  const { id, server, json } = options;
  const { incident, answer } = await IncidentClient.within(io, server, async (client) => {
    const incident = await client.resolve(id);
    return { incident, answer: await end(client, incident, await client.user(), "you do") };
  });
  done(io, incident, json, answer);
}

/** `svc incident add` and `remove` */
export async function peopleCommand(verb: "add" | "remove", options: PeopleOptions, io: Io): Promise<void> {
  const { role, server, json } = options;
  const { incident: typed, words } = splitWords(options.words, options.incident);
  if (words.length === 0) throw new UsageError("missing argument: USER");
  const { incident, answers } = await IncidentClient.within(io, server, async (client) => {
    const incident = await client.resolve(typed);
    // All are looked up before anyone is added: a typing error changes nothing.
    const emails: string[] = [];
    for (const word of words) emails.push(await emailOf(io, client, word));
    const answers: Participant[] = [];
    for (const email of new Set(emails)) {
      const work = verb === "add" ? invite(client, incident, email, role) : end(client, incident, email);
      answers.push(await work);
    }
    return { incident, answers };
  });
  done(io, incident, json, { items: answers });
}

export type RoleVerb = "take" | "give" | "drop";

/** `svc incident role take`, `give` and `drop` */
export async function roleCommand(
  verb: RoleVerb,
  options: Omit<PeopleOptions, "role">,
  io: Io,
): Promise<void> {
  const { server, json } = options;
  const { incident: typed, words } = splitWords(options.words, options.incident);
  const [user, typedRole, ...more] = verb === "give" ? words : [undefined, ...words];
  if (verb === "give" && user === undefined) throw new UsageError("missing argument: USER");
  if (more.length > 0) throw new UsageError(`unexpected argument: ${more[0]}`);
  const role = parseRole(typedRole ?? "commander");
  const { incident, answer } = await IncidentClient.within(io, server, async (client) => {
    const incident = await client.resolve(typed);
    const email = user === undefined ? await client.user() : await emailOf(io, client, user);
    const answer =
      verb === "drop"
        ? await client.post<Participant>(`${await pathOf(client, incident, email, "you do")}/renounce`, {
            role,
          })
        : await assume(client, incident, email, role);
    return { incident, answer };
  });
  done(io, incident, json, answer);
}

export function parseRole(text: string): string {
  const role = roles.find((one) => one === text.toLowerCase());
  if (role === undefined)
    throw new UsageError(`"${printable(text, 60)}" is not a role: it is one of ${roles.join(", ")}`);
  return role;
}

/** Gives a role to somebody, who joins first if necessary. A commander takes over from the present one. */
async function assume(client: IncidentClient, incident: IncidentDetail, email: string, role: string) {
  const participants = await client.participants(incident);
  const found = participants.find((one) => isPerson(one, email));
  const commander = participants.find((one) => has(one, "commander"));
  const isHandover = role === "commander" && commander !== undefined && commander !== found;
  if (found === undefined && !isHandover) return invite(client, incident, email, role);
  const { id } = found ?? (await invite(client, incident, email));
  const body = { role, ...(isHandover ? { replaces: commander.id } : {}) };
  return client.post<Participant>(`/incidents/${incident.id}/participants/${id}/roles`, body);
}

function has({ roles }: Participant, wanted: string): boolean {
  return roles.some(({ role, renounced_at }) => role === wanted && renounced_at === null);
}

async function invite(client: IncidentClient, { id }: { id: number }, email: string, role?: string) {
  const body = { email, ...(role === undefined ? {} : { roles: [role] }) };
  return client.post<Participant>(`/incidents/${id}/participants`, body);
}

async function end(client: IncidentClient, incident: IncidentDetail, email: string, who?: string) {
  return client.post<Participant>(`${await pathOf(client, incident, email, who)}/leave`, undefined);
}

/** @throws Conflict if they do not take part */
async function pathOf(client: IncidentClient, incident: IncidentDetail, email: string, who?: string) {
  const found = (await client.participants(incident)).find((one) => isPerson(one, email));
  if (found === undefined)
    throw new Conflict(`${who ?? `${printable(email, 200)} does`} not take part in ${incident.name}`);
  return `/incidents/${incident.id}/participants/${found.id}`;
}

function isPerson({ individual }: Participant, email: string): boolean {
  const address = individual.email.toLowerCase();
  return address === email.toLowerCase();
}
