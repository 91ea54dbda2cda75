import type { Example, ExampleDocument, Links } from "./example.ts";
import { applicationAddress, applicationSource, applications } from "./texts/applications.ts";
import { calledTeams, experts, people, type TeamKey, teams } from "./texts/people.ts";
import { references, templates } from "./texts/runbooks.ts";
import { goneTerm, termSource, terms } from "./texts/terms.ts";
import { hoursBefore } from "./time.ts";

export type Organisation = Pick<
  Example,
  "individuals" | "teams" | "services" | "commanders" | "terms" | "definitions" | "applications" | "templates"
> & { documents: Omit<ExampleDocument, "foundTermIds">[] };

/** Days before the present since when all of this is there: longer than any incident. */
const age = 100;
const shiftHours = 12;

/** What there is before anything happens: people, teams, who is on call, words, applications, runbooks. */
export function organisation(now: Date): Organisation {
  const at = hoursBefore(now, 24 * age);
  const linked = linksTo(new Map(terms.map(({ text }, index) => [text, index + 1])));
  const nobody = { types: [], priorities: [], terms: [] };
  const individuals = Object.entries(people).map(([key, name], index) => ({
    ...{ id: index + 1, name, email: `${key}@example.com`, at },
    ...linked(experts.find(({ person }) => person === key) ?? nobody),
  }));
  const idOf = individualIds(individuals);
  const teamRows = Object.entries(teams).map(([key, { name, description, ...rest }], index) => ({
    ...{ id: index + 1, name, description, email: `${key}@example.com`, at },
    ...linked(rest),
  }));
  const services = Object.values(teams).map(({ onCall }, index) => ({
    ...{ id: index + 1, name: onCall.name, description: onCall.description, at },
    rotation: { startsAt: at, shiftHours, members: onCall.people.map(idOf) },
  }));
  const serviceOf = (team: TeamKey) => Object.keys(teams).indexOf(team) + 1;
  return {
    ...{ individuals, teams: teamRows, services },
    commanders: Object.entries(calledTeams).map(([type, team]) => ({ type, serviceId: serviceOf(team) })),
    ...vocabulary(now, at),
    applications: applications.map(({ path, externalId = null, ...rest }, index) => ({
      ...{ id: index + 1, ...rest, uri: applicationAddress(path), externalId, at },
      source: externalId === null ? null : applicationSource,
    })),
    ...library(at, linked),
  };
}

/** The id of an individual by first name. */
export function individualIds(
  individuals: readonly { id: number; email: string }[],
): (key: string) => number {
  const ids = new Map(individuals.map(({ id, email }) => [email, id]));
  return (key) => {
    const id = ids.get(`${key}@example.com`);
    if (id === undefined) throw new RangeError(`Nobody in the example is called ${key}`);
    return id;
  };
}

interface NamedLinks {
  types: string[];
  priorities: string[];
  terms: string[];
}

function linksTo(ids: ReadonlyMap<string, number>): (wanted: NamedLinks) => Links {
  const idOf = (text: string) => {
    const id = ids.get(text);
    if (id === undefined) throw new RangeError(`The example has no term ${text}`);
    return id;
  };
  return ({ types, priorities, terms: words }) => ({ types, priorities, termIds: words.map(idOf) });
}

function vocabulary(now: Date, at: Date): Pick<Organisation, "terms" | "definitions"> {
  const all = [...terms, goneTerm].map(({ own, ...rest }, index) => {
    const id = index + 1;
    const from = { source: own ? null : termSource, externalId: own ? null : `T-${id}` };
    return { ...rest, id, from };
  });
  return {
    terms: all.map(({ id, text, discoverable = true, from }) => ({
      ...{ id, text, discoverable, ...from, at },
      deletedAt: text === goneTerm.text ? hoursBefore(now, 24 * 30) : null,
    })),
    definitions: all.map(({ id, definition, from: { source, externalId } }) => ({
      ...{ id, text: definition, termIds: [id], source, at },
      externalId: externalId && `${externalId}-1`,
    })),
  };
}

/** Runbooks, links and templates: documents that belong to no incident. */
function library(
  at: Date,
  linked: (wanted: NamedLinks) => Links,
): Pick<Organisation, "documents" | "templates"> {
  const shared = { incidentId: null, createdAt: at, updatedAt: at, tasksOf: null, tasksReadAt: null };
  const books = references.map(({ content, link = null, name, description, ...links }, index) => ({
    ...{ id: index + 1, name, description, resourceType: "reference", weblink: link, ...shared },
    ...linked(links),
    content: content === undefined ? null : { text: content, version: 1 },
  }));
  const forms = templates.map(({ name, description, content }, index) => ({
    ...{
      id: books.length + index + 1,
      name,
      description,
      resourceType: "template",
      weblink: null,
      ...shared,
    },
    ...{ types: [], priorities: [], termIds: [] },
    content: { text: content, version: 1 },
  }));
  return {
    documents: [...books, ...forms],
    templates: templates.flatMap(({ types }, index) =>
      types.map((type) => ({ type, resourceType: "incident", documentId: books.length + index + 1 })),
    ),
  };
}
