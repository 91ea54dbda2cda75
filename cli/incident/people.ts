import { shortName } from "../../core/incident/words.ts";
import { InvalidInput, NotFound } from "../../platform/errors.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import { type IncidentClient, nearestNamed, type Person, type Task } from "./incident.ts";

/** How a person is shown where there is little space. */
export function nameOf(person: Person | null | undefined): string {
  return person ? printable(person.name || person.email, 80) : "";
}

/** Those who do a task: the assignees, else the owner. */
export function peopleOf({ owner, assignees }: Pick<Task, "owner" | "assignees">): string {
  return assignees.length > 0 ? assignees.map(nameOf).join(", ") : nameOf(owner);
}

/** `Dana (dana@example.com)` */
export function fullNameOf({ name, email }: Person): string {
  const isPart = name === "" || email === name || email.startsWith(`${name}@`);
  return printable(isPart ? email : `${name} (${email})`, 200);
}

/**
 * Returns the e-mail address of the person that `text` names: an address, the part before the @, or a name. The server
 * need not know an address yet.
 *
 * @throws NotFound with the nearest name
 */
export async function emailOf(io: Io, client: IncidentClient, text: string): Promise<string> {
  const word = text.trim();
  if (word === "") throw new UsageError("the name of a person is empty");
  if (word === "me" || word === "@me") return client.user();
  if (word.includes("@")) return word;
  const known = await knownPeople(client, word);
  const wanted = word.toLowerCase();
  const exact = known.filter(
    ({ name, email }) => name.toLowerCase() === wanted || email.toLowerCase().startsWith(`${wanted}@`),
  );
  if (exact.length === 1) return exact[0]!.email;
  if (exact.length > 1) return choosePerson(io, word, exact);
  const names = known.flatMap((person) =>
    [person.name, shortName(person.email)].map((name) => ({ name, person })),
  );
  const near = nearestNamed(names, word);
  const hint = near ? ` Did you mean ${fullNameOf(near.person)}?` : "";
  throw new NotFound(
    `nobody is called "${printable(word, 80)}".${hint} Name somebody new by their e-mail address`,
  );
}

async function choosePerson(io: Io, word: string, people: readonly Person[]): Promise<string> {
  if (!io.canAsk()) {
    const names = people.map(({ email }) => printable(email, 100)).join(", ");
    throw new UsageError(`"${printable(word, 80)}" is the name of several people: ${names}`);
  }
  const choices = people.map((person) => ({ value: person.email, label: fullNameOf(person) }));
  return io.choose(`Which ${printable(word, 80)}?`, choices);
}

/** People who may be meant, then others, for suggestions. */
async function knownPeople(client: IncidentClient, word: string): Promise<Person[]> {
  const path = "/individuals/";
  const lists = await Promise.all([
    // The server completes a bare name, if it has a domain for that.
    client.list<Person>(path, { email: word }, 1).catch(ifInvalid),
    client.list<Person>(path, { name: word }, 50).catch(ifInvalid),
    client.list<Person>(path, {}, 200),
  ]);
  const people = new Map(lists.flat().map((person) => [person.email, person]));
  return [...people.values()];
}

function ifInvalid(error: unknown): Person[] {
  if (error instanceof InvalidInput) return [];
  throw error;
}
