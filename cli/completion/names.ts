import { isSaid } from "../../core/incident/timeline/fold.ts";
import { entryName } from "../../core/incident/words.ts";
import { queryText } from "../client/api_client.ts";
import { affectedBy } from "../incident/affected.ts";
import { roles } from "../incident/args.ts";
import { hasFormOfId } from "../incident/id.ts";
import {
  type Incident,
  IncidentClient,
  type Named,
  type Person,
  type Task,
  type TimelineEvent,
} from "../incident/incident.ts";
import { titleOf } from "../incident/text.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import type { Asked } from "./complete.ts";
import type { Candidate } from "./values.ts";

/** Less than 300 ms with the start of svc. After that, the user has continued to type. */
export const patienceMilliseconds = 200;
/** People are read page by page, until the time is up. */
const peopleAtOnce = 200;
const mostPeople = 2000;

/**
 * Candidates that only the server knows, for the arguments of `svc incident`: incidents, people, tasks, documents. Whatever
 * goes wrong (no sign-in, no server, a slow one), there are none, and nothing is printed.
 */
export async function namesFor(asked: Asked, io: Io): Promise<Candidate[]> {
  const kinds = kindsOf(asked);
  if (kinds.length === 0) return [];
  const controller = new AbortController();
  const quiet: Io = {
    ...io,
    stderr: { write: () => true },
    canAsk: () => false,
    server: asked.options.get("server"),
    interruptible: (run) => run(controller.signal),
  };
  const found: Found[] = [];
  const work = IncidentClient.within(quiet, async (client) => {
    const add = (more: Found[]) => found.push(...more);
    await Promise.all(kinds.map((kind) => lookUps[kind](client, asked, add).catch(() => {})));
  });
  const late = io.sleep(patienceMilliseconds, controller.signal);
  await Promise.race([work, late]).catch(() => {});
  controller.abort();
  return spelled(found, asked.last);
}

type Kind =
  | "incidents"
  | "people"
  | "tasks"
  | "documents"
  | "entries"
  | "types"
  | "priorities"
  | "roles"
  | "catalog"
  | "affected";

/** The kinds of value that the placeholder of the help allows here: `USER [ROLE]` is a user, and then a role. */
function kindsOf({ metavar, multiple, words, path, last }: Asked): Kind[] {
  const one: Record<string, Kind> = {
    ID: "incidents",
    OTHER: "incidents",
    USER: "people",
    DOCUMENT: "documents",
    ENTRY: "entries",
  };
  if (path[0] !== "doc") Object.assign(one, { TYPE: "types", PRIORITY: "priorities" });
  if (!multiple) return Object.hasOwn(one, metavar) ? [one[metavar]!] : [];
  // The numbers of tasks and entries are theirs.
  const takesIncident = !/^(TASK|ENTRY)\b/.test(metavar);
  const [first] = words;
  const isNamed = takesIncident && first !== undefined && hasFormOfId(first);
  const position = words.length - (isNamed ? 1 : 0);
  const parts = metavar.replace(/\.{3}|[[\]]/g, "").split(" ");
  const part = parts[Math.min(position, parts.length - 1)]!;
  const isLast = position >= parts.length && parts.length > 1 && !metavar.endsWith("...");
  const many: Record<string, Kind> = { ...one, ROLE: "roles", TASK: "tasks" };
  if (path[0] === "affected") many.NAME = path[1] === "add" ? "catalog" : "affected";
  const kinds: Kind[] = Object.hasOwn(many, part) && !isLast ? [many[part]!] : [];
  // A first word may name the incident. Without a letter of it, the list would be too long.
  const isIncident = takesIncident && words.length === 0 && (last !== "" || kinds.length === 0);
  return isIncident && kinds[0] !== "incidents" ? [...kinds, "incidents"] : kinds;
}

interface Found extends Candidate {
  /** The unambiguous form: the address of a person whose name others may also have. */
  long?: string;
}

type LookUp = (client: IncidentClient, asked: Asked, add: (found: Found[]) => unknown) => Promise<unknown>;

const lookUps: Record<Kind, LookUp> = {
  incidents: async (client, { last }, add) => {
    const [open, newest] = await Promise.all([
      client.list<Incident>("/incidents/", { status: "Active,Stable" }, 50),
      client.list<Incident>("/incidents/", {}, 50),
    ]);
    const all = new Map([...open, ...newest].map((one) => [one.id, one]));
    const isNumber = /^\d+$/.test(last);
    for (const one of all.values())
      add([{ word: isNumber ? String(one.id) : one.name, about: about(`${titleOf(one)} (${one.status})`) }]);
  },
  people: async (client, _asked, add) => {
    let cursor: string | null | undefined;
    for (let read = 0; read < mostPeople && cursor !== null; read += peopleAtOnce) {
      const query = queryText({ sort: "name", limit: String(peopleAtOnce), cursor });
      type Page = { items: Person[]; next_cursor: string | null };
      const page: Page = await client.call("GET", `/individuals/${query}`);
      cursor = page.next_cursor;
      add(
        page.items.map(({ name, email }) => ({
          word: email.split("@")[0]!,
          long: email,
          about: about(name),
        })),
      );
    }
  },
  tasks: async (client, { options }, add) => {
    const { id } = await client.resolve(options.get("incident"));
    const tasks = await client.list<Task>("/tasks/", { incident_id: String(id), status: "Open" }, 50);
    add(tasks.map((task) => ({ word: String(task.id), about: about(task.description) })));
  },
  documents: async (client, { options }, add) => {
    const { id } = await client.resolve(options.get("incident"));
    const documents = await client.list<Named>("/documents/", { incident_id: String(id) }, 50);
    add(documents.map((one) => ({ word: String(one.id), about: about(one.name) })));
  },
  entries: async (client, { options }, add) => {
    const [{ id }, user] = await Promise.all([client.resolve(options.get("incident")), client.user()]);
    const newest = await client.list<TimelineEvent>(`/incidents/${id}/events/`, { sort: "-id" }, 200);
    const own = newest.filter((event) => isSaid(event) && event.actor === user && !event.withdrawn_at);
    add(own.map((event) => ({ word: entryName(event.id), about: about(event.description) })));
  },
  types: async (client, _asked, add) => add(named(await client.list<Named>("/incident_types/"))),
  priorities: async (client, _asked, add) => add(named(await client.list<Named>("/incident_priorities/"))),
  catalog: async (client, _asked, add) => {
    const lists = ["/services/", "/applications/"].map((path) => client.list<Named>(path));
    for (const list of await Promise.all(lists)) add(named(list));
  },
  affected: async (client, { options, words }, add) => {
    const [first = ""] = words;
    const typed = options.get("incident") ?? (hasFormOfId(first) ? first : undefined);
    const { services, applications } = await affectedBy(client, await client.resolve(typed));
    add(named([...services, ...applications]));
  },
  roles: async (_client, _asked, add) => add(roles.map((word) => ({ word }))),
};

const named = (items: readonly Named[]): Found[] => items.map(({ name }) => ({ word: name }));
const about = (text: string): string => printable(text, 60).replaceAll("\t", " ");

/** Words that mean the same to every shell, once it has escaped spaces: no name may become part of a command. */
const plainWord = /^[\p{L}\p{N}][\p{L}\p{N}\p{M}@._+ -]*$/u;

/** Spells the candidates as the user began: in lower case, or as an address. */
function spelled(found: readonly Found[], last: string): Candidate[] {
  const counts = new Map<string, number>();
  for (const { word } of found) counts.set(word, (counts.get(word) ?? 0) + 1);
  const candidates = found.map(({ word, long = word, about }): Candidate => {
    const isLong = last.includes("@") || counts.get(word) !== 1;
    return { word: isLong ? long : word, about };
  });
  const begin = last.toLowerCase();
  const fitting = candidates.filter(
    ({ word }) => plainWord.test(word) && word.toLowerCase().startsWith(begin),
  );
  return fitting.map(({ word, about }) => ({ word: last + word.slice(last.length), about }));
}
