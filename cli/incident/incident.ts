import type { Static } from "elysia";
import { NotFound, Unavailable } from "../../platform/errors.ts";
import { nearest } from "../../platform/nearest.ts";
import type { eventView } from "../../server/event/model.ts";
import type { incidentDetail, incidentView } from "../../server/incident/model.ts";
import type { messageView } from "../../server/message/routes.ts";
import type { participantView, personView } from "../../server/participant/model.ts";
import type { reportView } from "../../server/report/model.ts";
import type { taskView } from "../../server/task/model.ts";
import { ApiClient, type CallOptions } from "../client/api_client.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import { readDefaultIncident } from "./default.ts";
import { type IncidentRef, parseIncidentId } from "./id.ts";
import { titleOf } from "./text.ts";

// The requests of `svc incident` to the API, with the types of its answers.

export type Person = Static<typeof personView>;
export type Incident = Static<typeof incidentView>;
export type IncidentDetail = Static<typeof incidentDetail>;
export type Status = Incident["status"];
export type Participant = Static<typeof participantView>;
export type TimelineEvent = Static<typeof eventView>;
export type Message = Static<typeof messageView>;
export type StatusReport = Static<typeof reportView>;
export type Task = Static<typeof taskView>;

/** A record of the catalog. */
export interface Named {
  id: number;
  name: string;
}

/** The API, for incidents. */
export class IncidentClient extends ApiClient {
  #user: string | undefined;

  /** The e-mail address of the signed-in user. */
  async user(): Promise<string> {
    this.#user ??= this.session.user ?? (await this.call<{ user: string }>("GET", "/whoami")).user;
    return this.#user;
  }

  /**
   * Returns the incident that a command is about: the one that was typed, else SVC_INCIDENT, else that of
   * `svc incident use`, else the user's only active one, else the one that the user chooses now.
   *
   * @throws UsageError without a terminal to choose on
   * @throws NotFound with similar names
   */
  async resolve(typed: string | undefined): Promise<IncidentDetail> {
    if (typed !== undefined) return this.byNumber(typed, await this.get(await this.refOf(typed, "ID")));
    const variable = this.io.env.SVC_INCIDENT?.trim();
    if (variable)
      return this.byNumber(
        variable,
        await this.get(await this.refOf(variable, "SVC_INCIDENT"), "SVC_INCIDENT"),
      );
    const chosen = readDefaultIncident(this.io.env);
    if (chosen?.server === this.session.server.base)
      return this.get(String(chosen.id)).catch((error: unknown) => {
        if (!(error instanceof NotFound)) throw error;
        throw new NotFound(
          `${chosen.name}, the incident in use, is gone, or you may not see it; to choose another: svc incident use ID`,
          { cause: error },
        );
      });
    const user = await this.user();
    const mine = await this.list<Incident>("/incidents/", { participant: user, status: "Active" });
    return this.get(String(mine.length === 1 ? mine[0]!.id : await this.choose(mine)));
  }

  /** @throws NotFound with similar names, for an incident that does not exist or that the user may not see */
  async get(ref: IncidentRef, source?: string): Promise<IncidentDetail> {
    try {
      const incident = await this.call<IncidentDetail>("GET", `/incidents/${ref}`);
      if (!isIncident(incident))
        throw new Unavailable(
          `${this.session.server.base} answered without an incident; is it an svc server?`,
        );
      return incident;
    } catch (error) {
      if (!(error instanceof NotFound)) throw error;
      const from = source === undefined ? "" : `${source}: `;
      const hint = await this.similar(ref).catch(() => "");
      throw new NotFound(`${from}there is no incident ${ref} that you may see${hint}`, { cause: error });
    }
  }

  /**
   * The API finds a number by the id, and people mean that of the name. They differ if several incidents were reported at
   * once.
   *
   * @throws UsageError if they differ
   */
  private byNumber(typed: string, found: IncidentDetail): IncidentDetail {
    const [, number] = /^#?(\d+)$/.exec(typed.trim()) ?? [];
    if (number === undefined || found.name === `INC-${number}`) return found;
    throw new UsageError(
      `${number} is the id of ${found.name}: write INC-${number} or ${found.name}, whichever you mean`,
    );
  }

  /** All participants, or those who take part now. */
  async participants({ id }: { id: number }, active = true): Promise<Participant[]> {
    return this.list(
      `/incidents/${id}/participants/`,
      active ? { active: "true" } : {},
      Number.POSITIVE_INFINITY,
    );
  }

  /** Sends a POST with a key: a repetition with the same key changes nothing. */
  async post<T>(path: string, body: unknown, { key = crypto.randomUUID(), ...more }: CallOptions = {}) {
    return this.call<T>("POST", path, body, { key, ...more });
  }

  private async refOf(typed: string, name: string): Promise<IncidentRef> {
    const ref = parseIncidentId(typed, this.session.server.base);
    if (ref !== undefined) return ref;
    const hint = await this.withTitle(typed).catch(() => "");
    throw new UsageError(
      `${name}: "${printable(typed, 80)}" is not an incident, such as INC-7, its number or its URL${hint}`,
    );
  }

  private async choose(mine: readonly Incident[]): Promise<number> {
    const { io } = this;
    if (!io.canAsk()) {
      const names = mine.map(({ name }) => name).slice(0, 10);
      const why =
        names.length === 0 ? "you have no active incident" : `you have several: ${names.join(", ")}`;
      throw new UsageError(`which incident? Name it, set SVC_INCIDENT, or run svc incident use ID (${why})`);
    }
    const open = mine.length > 0 ? mine : await this.list<Incident>("/incidents/", { status: "Active" }, 50);
    if (open.length === 0) throw new NotFound("there is no active incident: name the one that you mean");
    return io.choose(
      "Which incident?",
      open.map((incident) => ({
        value: incident.id,
        label: `${incident.name}  ${titleOf(incident, 60)}`,
        hint: printable(incident.incident_priority.name, 40),
      })),
    );
  }

  /** `. Did you mean INC-44?` */
  private async similar(ref: IncidentRef): Promise<string> {
    const newest = await this.list<Incident>("/incidents/", {}, 200);
    const found = nearestNamed(newest, /^\d/.test(ref) ? `INC-${ref}` : ref);
    return found ? `. Did you mean ${found.name} (${printable(found.title, 80)})?` : "";
  }

  private async withTitle(text: string): Promise<string> {
    const found = await this.list<Incident>("/incidents/", { q: text.slice(0, 200) }, 3);
    const names = found.map(({ name, title }) => `${name} (${printable(title, 60)})`);
    return names.length === 0 ? "" : `. Did you mean ${names.join(" or ")}?`;
  }
}

function isIncident({ id, name, title, status }: Partial<IncidentDetail>): boolean {
  return Number.isSafeInteger(id) && [name, title, status].every((text) => typeof text === "string");
}

/** Returns `instead` for a route that an older server does not have. */
export function ifUnknown<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof NotFound) return instead;
    throw error;
  };
}

/** Prints on stderr which incident was changed. */
export function printIncident(io: Io, incident: Incident): void {
  const closed = incident.status === "Closed" ? " (Closed)" : "";
  io.stderr.write(`${incident.name}: ${titleOf(incident)}${closed}\n`);
}

/** Finds an item by name, ignoring case. @throws UsageError with the names, or the nearest one */
export function pickNamed<T extends Named>(items: readonly T[], text: string, what: string): T {
  const wanted = text.trim().toLowerCase();
  const found = items.find(({ name }) => name.toLowerCase() === wanted);
  if (found) return found;
  if (items.length === 0) throw new Unavailable(`the server has no ${what} yet`);
  const near = nearestNamed(items, wanted);
  const shown = (name: string) => printable(name, 80);
  const hint = near
    ? `did you mean ${shown(near.name)}?`
    : `it is one of ${items.map(({ name }) => shown(name)).join(", ")}`;
  throw new UsageError(`"${shown(text)}" is not an incident ${what}: ${hint}`);
}

/** Finds the item whose name is closest to `text`, ignoring case. Undefined if none is close. */
export function nearestNamed<T extends { name: string }>(items: readonly T[], text: string): T | undefined {
  const lower = (name: string) => name.toLowerCase();
  const match = nearest(
    lower(text),
    items.map(({ name }) => lower(name)),
  );
  return items.find(({ name }) => lower(name) === match);
}
