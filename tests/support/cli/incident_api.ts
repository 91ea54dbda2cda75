import { messageOf, SseServer } from "./sse_server.ts";

/** A fake API with incidents and events, controlled by a test. */
export class IncidentApi extends SseServer {
  readonly incidents = new Map<number, Record<string, unknown>>();
  readonly events = new Map<number, Record<string, unknown>[]>();
  #nextEvent = 1;

  constructor() {
    super();
    this.answers.set("/incidents/", ({ url }) => {
      const statuses = new URL(url).searchParams.get("status")?.split(",");
      const items = [...this.incidents.values()].filter(
        ({ status }) => statuses?.includes(String(status)) ?? true,
      );
      return page(items);
    });
  }

  /** Adds an incident that was reported 12 minutes ago, or changes one. */
  incident(id: number, values: Record<string, unknown> = {}): void {
    const known = this.incidents.get(id);
    const version = Number(known?.version ?? 0) + 1;
    const reported_at = new Date(Date.now() - 720_000).toISOString();
    const incident = {
      ...(known ?? { ...ordinaryIncident, id, name: `INC-${id}`, reported_at }),
      ...values,
      version,
    };
    this.incidents.set(id, incident);
    const detail = () =>
      this.incidents.has(id)
        ? Response.json(this.incidents.get(id))
        : Response.json({ code: "not_found", detail: "Not found" }, { status: 404 });
    for (const ref of [id, `INC-${id}`]) this.answers.set(`/incidents/${ref}`, detail);
    this.answers.set(`/incidents/${id}/events/`, ({ url }) => {
      const { searchParams: query } = new URL(url);
      const all = this.events.get(id) ?? [];
      const after = query.get("after");
      if (after !== null) return page(all.filter((event) => Number(event.id) > Number(after)));
      if (query.get("sort") !== "-id") throw new Error("a backdated event would be missing");
      return page([...all].reverse().slice(0, Number(query.get("limit"))));
    });
  }

  /** Adds an event to the timeline and sends it to streams. */
  happens(id: number, description: string, values: Record<string, unknown> = {}) {
    const event = {
      id: this.#nextEvent++,
      at: new Date().toISOString(),
      actor: "dana@example.com",
      source: "core",
      kind: "note",
      description,
      data: {},
      ...values,
    };
    this.events.set(id, [...(this.events.get(id) ?? []), event]);
    const { name } = this.incidents.get(id)!;
    this.send(messageOf(event), `/incidents/${id}/stream`);
    this.send(`event: incident\ndata: ${JSON.stringify({ id, name })}\n\n`, "/incidents/stream");
    return event;
  }

  /** The events after the client's last one. */
  protected override first(path: string, after: string | null): string {
    const id = Number(/\d+/.exec(path)?.[0]);
    const missed = (this.events.get(id) ?? []).filter((event) => Number(event.id) > Number(after));
    return [": connected\n\n", ...missed.map(messageOf)].join("");
  }
}

const page = (items: unknown[]) => Response.json({ items, next_cursor: null });

/** The fields of an incident that most tests do not care about. */
export const ordinaryIncident = {
  title: "Checkout is down",
  description: "",
  status: "Active",
  visibility: "Open",
  incident_type_id: 1,
  incident_type: { id: 1, name: "Other" },
  incident_priority_id: 1,
  incident_priority: { id: 1, name: "High" },
  resolution: null,
  stable_at: null,
  closed_at: null,
  cost: 0,
  reporter: null,
  commander: { id: 1, name: "Dana", email: "dana@example.com" },
  conversations: [],
};
