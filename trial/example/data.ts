import { people, states } from "./crowd.ts";
import type { Example, ExampleDocument, ExampleEvent } from "./example.ts";
import { groupMembers, openIncident, report } from "./opening.ts";
import { papers } from "./papers.ts";
import { type Planned, planIncidents } from "./plan.ts";
import { openScene } from "./scene.ts";
import { messages, reports } from "./talk.ts";
import { type World, worldAt } from "./world.ts";

const exampleSeed = "brindlewick";

/** Its group could not be made: something to try `retry` on. */
const broken = "Northern replica is twenty minutes behind";

/**
 * Three months of an imaginary company's incidents that end at `now`. Pure: the same seed and the same `now` give the
 * same data, to the byte, and every id is fixed.
 */
export function exampleData({ seed = exampleSeed, now }: { seed?: string; now: Date }): Example {
  const world = worldAt(now, seed);
  const made = planIncidents(seed, now).map((planned, index) => incidentOf(world, planned, index + 1));
  const all = <K extends keyof Made>(key: K): Made[K][number][] =>
    made.flatMap((one) => one[key] as Made[K][number][]);
  const { documents, ...organisation } = world.organisation;
  return {
    ...{ now, ...organisation },
    documents: [...documents, ...all("documents")].map((document) => ({
      ...document,
      foundTermIds: termsOf(world, document),
    })),
    ...{ incidents: all("incidents"), participants: all("participants"), roles: all("roles") },
    ...{ reports: all("reports"), reminders: all("reminders"), tasks: all("tasks") },
    ...{ conversations: all("conversations"), messages: all("messages"), groups: all("groups") },
    ...{ groupMembers: all("groupMembers"), recommendations: all("recommendations"), steps: all("steps") },
    events: inOrder(all("events")),
  };
}

type Made = Omit<Example, keyof World["organisation"] | "now" | "events"> & {
  documents: World["organisation"]["documents"];
  events: Omit<ExampleEvent, "id">[];
};

function incidentOf(world: World, planned: Planned, id: number): Made {
  const scene = openScene(world, planned, id);
  const { scenario, reportedAt, stableAt, closedAt, cast } = scene;
  const opening = openIncident(scene, scenario.title === broken);
  report(scene);
  people(scene);
  states(scene);
  const said = messages(scene, opening.conversations[0]?.id ?? 0);
  const told = reports(scene);
  // Documents name those who take part, so these have to be known first.
  scene.play();
  const written = papers(scene, synced(planned, id));
  scene.play();
  const changes = scene.events.filter(
    ({ kind }) => kind.startsWith("incident.") && kind !== "incident.reported",
  );
  return {
    incidents: [
      {
        ...{
          id,
          title: scenario.title,
          description: scenario.description,
          status: scenario.status ?? "Closed",
        },
        ...{ visibility: visibilityOf(planned), type: scenario.type, priority: scenario.priority },
        ...{ resolution: stableAt ? scenario.resolution : null, reportedAt, stableAt, closedAt },
        ...{ version: 1 + changes.length, updatedAt: changes.at(-1)?.at ?? reportedAt },
        costBasis: 1 + cast.changes() + changes.length,
      },
    ],
    ...{ participants: cast.participants, roles: cast.roles, ...written, ...told, messages: said },
    ...{ conversations: opening.conversations, groups: opening.groups, steps: opening.steps },
    ...{ recommendations: opening.recommendations, groupMembers: groupMembers(scene, opening) },
    events: scene.events.map((event) => ({ ...event, incidentId: id })),
  };
}

function visibilityOf({ scenario: { visibility, type } }: Planned): "Open" | "Restricted" {
  return visibility ?? (type === "Security" || type === "Vulnerability" ? "Restricted" : "Open");
}

/** Of the incidents that go on, every third has a document that was never read, and every third one an old reading. */
function synced({ scenario: { status } }: Planned, id: number): "all" | "nothing" | "before" {
  if (status === undefined) return "all";
  return (["all", "nothing", "before"] as const)[id % 3] ?? "all";
}

/** Null for what document-term-sync has yet to read: links have no text, and some texts are new. */
function termsOf(
  world: World,
  { content, updatedAt, incidentId }: ExampleDocument | World["organisation"]["documents"][0],
) {
  const fresh = incidentId !== null && world.now.getTime() - updatedAt.getTime() < 24 * 3_600_000;
  return content === null || fresh ? null : world.termsIn(content.text);
}

/** The timeline's ids go with its times. */
function inOrder(events: readonly Omit<ExampleEvent, "id">[]): ExampleEvent[] {
  return events
    .toSorted((a, b) => a.at.getTime() - b.at.getTime())
    .map((event, index) => ({ id: index + 1, ...event }));
}
