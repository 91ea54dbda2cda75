import { addressOf } from "./cast.ts";
import type { Example, ExampleRecommendation, ExampleStep, Links } from "./example.ts";
import type { Scene } from "./scene.ts";
import { hoursAfter } from "./time.ts";

const second = 1 / 3600;

export type Opening = Pick<Example, "recommendations" | "steps" | "conversations" | "groups"> & {
  /** Teams that were proposed. */
  teamIds: number[];
};

/**
 * What the service does by itself within seconds of a report: who and what is proposed, where it is talked about, and
 * the steps that all of this was done in. `broken` is an incident whose group could not be made.
 */
export function openIncident(scene: Scene, broken: boolean): Opening {
  const { id, name, world, reportedAt, closedAt, at } = scene;
  const after = (seconds: number) => hoursAfter(reportedAt, seconds * second);
  const proposed = propose(scene);
  const conversation = {
    ...{ id: world.next("conversation"), incidentId: id, createdAt: after(4) },
    archivedAt: closedAt && hoursAfter(closedAt, 2 * second),
  };
  const group = broken
    ? undefined
    : { id: world.next("group"), incidentId: id, name: name.toLowerCase(), createdAt: after(5) };
  at(after(3), (date) => tellProposals(scene, proposed, date));
  at(after(4), (date) => {
    const made = { kind: "conversation.created", description: "Conversation opened" };
    scene.tell({
      at: date,
      actor: "system",
      source: "channel",
      ...made,
      data: { conversation_id: conversation.id },
    });
  });
  at(after(5), (date) => {
    const told = { at: date, actor: "system", source: "mailing-list" };
    const what = group
      ? {
          kind: "group.created",
          description: `Group ${group.name} made`,
          data: { participant_group_id: group.id },
        }
      : { kind: "step.failed", description: `Group not made: ${noAnswer}`, data: { step: groupStep } };
    scene.tell({ ...told, ...what });
  });
  return {
    ...{ recommendations: proposed, conversations: [conversation], groups: group ? [group] : [] },
    steps: steps(scene, broken),
    teamIds: proposed.flatMap(({ teamId }) => teamId ?? []),
  };
}

const groupStep = "reported:group:mailing-list";
const noAnswer = "mailing-list did not answer within 30 s";

/** Documents, people and teams whose types, priorities or terms are the incident's. */
function propose({ id, world, scenario, reportedAt, random }: Scene): ExampleRecommendation[] {
  const { organisation } = world;
  const words = new Set(world.termsIn(`${scenario.title}\n${scenario.description}`));
  const nameOfTerm = new Map(organisation.terms.map((term) => [term.id, term.text]));
  const reasonsFor = ({ types, priorities, termIds }: Links): ExampleRecommendation["reasons"] => [
    ...types
      .filter((type) => type === scenario.type)
      .map((name) => ({ kind: "incident_type" as const, name })),
    ...priorities
      .filter((priority) => priority === scenario.priority)
      .map((name) => ({ kind: "incident_priority" as const, name })),
    ...termIds
      .filter((termId) => words.has(termId))
      .map((termId) => ({ kind: "term" as const, name: nameOfTerm.get(termId) ?? "" })),
  ];
  const createdAt = hoursAfter(reportedAt, random.between(2, 3) * second);
  const nothing = { documentId: null, individualId: null, teamId: null };
  const rows = (
    records: readonly (Links & { id: number })[],
    what: "documentId" | "individualId" | "teamId",
    pluginSlug: string,
  ) =>
    records
      .map((record) => ({ record, reasons: reasonsFor(record) }))
      .filter(({ reasons }) => reasons.length > 0)
      .map(({ record, reasons }) => ({
        ...{ id: world.next("recommendation"), incidentId: id, pluginSlug, ...nothing, [what]: record.id },
        ...{ reasons, createdAt },
      }));
  return [
    ...rows(organisation.documents, "documentId", "document-matcher"),
    ...rows(organisation.individuals, "individualId", "roster"),
    ...rows(organisation.teams, "teamId", "roster"),
  ];
}

function tellProposals(scene: Scene, proposed: readonly ExampleRecommendation[], date: Date): void {
  const { organisation } = scene.world;
  for (const { documentId, individualId, teamId, pluginSlug: source } of proposed) {
    const told = { at: date, actor: "system", source };
    const document = organisation.documents.find(({ id }) => id === documentId);
    const team = organisation.teams.find(({ id }) => id === teamId);
    const person = organisation.individuals.find(({ id }) => id === individualId);
    if (document) {
      const description = `Document proposed: ${document.name}`;
      scene.tell({ ...told, kind: "document.proposed", description, data: { document_id: document.id } });
    }
    if (team) {
      const description = `Team proposed: ${team.name}`;
      scene.tell({ ...told, kind: "team.proposed", description, data: { team_id: team.id } });
    }
    if (person) scene.cast.join(person.email.split("@")[0] ?? "", ["participant"], date, "system");
  }
}

function steps({ id, reportedAt, closedAt }: Scene, broken: boolean): ExampleStep[] {
  const done = (step: string, finishedAt: Date): ExampleStep => ({
    ...{ incidentId: id, step, state: "Done", attempts: 1, finishedAt, error: null },
  });
  const opened = ["participants", "commander", "documents", "conversation:channel"].map((what, index) =>
    done(`reported:${what}`, hoursAfter(reportedAt, (index + 2) * second)),
  );
  return [
    ...opened,
    broken
      ? { incidentId: id, step: groupStep, state: "Failed", attempts: 10, finishedAt: null, error: noAnswer }
      : done(groupStep, hoursAfter(reportedAt, 6 * second)),
    ...(closedAt ? [done("closed:conversation:channel", hoursAfter(closedAt, 2 * second))] : []),
  ];
}

/** People by their own address, teams by theirs; without those who have left. */
export function groupMembers(scene: Scene, { groups, teamIds }: Opening): Example["groupMembers"] {
  const { world, cast } = scene;
  return groups.flatMap(({ id: groupId, createdAt }) => [
    ...teamIds.map((teamId) => ({
      ...{ id: world.next("groupMember"), groupId, individualId: null, teamId, addedAt: createdAt },
    })),
    ...cast.participants
      .filter(({ leftAt }) => leftAt === null)
      .map(({ individualId, joinedAt }) => ({
        ...{ id: world.next("groupMember"), groupId, individualId, teamId: null },
        addedAt: joinedAt > createdAt ? joinedAt : createdAt,
      })),
  ]);
}

/** Who reports; the service does what follows. */
export function report(scene: Scene): void {
  const { scenario, reportedAt, id, tell, at } = scene;
  const actor = addressOf(scenario.reporter);
  at(reportedAt, (date) => {
    const kind = "incident.reported";
    tell({ at: date, actor, kind, description: `Reported: ${scenario.title}`, data: { incident_id: id } });
    scene.cast.join(scenario.reporter, ["reporter"], date);
  });
}
