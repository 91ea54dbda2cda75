import { parseUserName } from "../../core/auth/user/field.ts";
import { applications } from "../../core/catalog/application.ts";
import { listRecords } from "../../core/catalog/list.ts";
import { services } from "../../core/catalog/service.ts";
import type { Actor } from "../../core/context.ts";
import { getAffected, setAffected } from "../../core/incident/affected/affected.ts";
import { createDocument } from "../../core/incident/document/create.ts";
import { amendEntry, withdrawEntry } from "../../core/incident/event/amend.ts";
import { getEvent } from "../../core/incident/event/get.ts";
import { noteOnTimeline } from "../../core/incident/event/note.ts";
import { documentsWithText, redactEvent } from "../../core/incident/event/redact.ts";
import { retryFlow } from "../../core/incident/flow/retry.ts";
import type { IncidentDetail } from "../../core/incident/incident/get.ts";
import { idOfName, isIncidentName } from "../../core/incident/incident/name.ts";
import { removeIncident } from "../../core/incident/lifecycle/remove.ts";
import { type IncidentFields, updateIncident } from "../../core/incident/lifecycle/update.ts";
import { createLink } from "../../core/incident/link/create.ts";
import { removeLink } from "../../core/incident/link/remove.ts";
import { say } from "../../core/incident/message/say.ts";
import { assumeRole } from "../../core/incident/participant/assume.ts";
import { inviteParticipant } from "../../core/incident/participant/invite.ts";
import { leaveIncident } from "../../core/incident/participant/leave.ts";
import { listParticipants } from "../../core/incident/participant/list.ts";
import type { Participant, ParticipantRole } from "../../core/incident/participant/participant.ts";
import { renounceRole } from "../../core/incident/participant/renounce.ts";
import { getReport } from "../../core/incident/report/get.ts";
import { writeReport } from "../../core/incident/report/write.ts";
import { createTask } from "../../core/incident/task/create.ts";
import { getTask } from "../../core/incident/task/get.ts";
import { removeTask } from "../../core/incident/task/remove.ts";
import { updateTask } from "../../core/incident/task/update.ts";
import { type incidentStatuses, participantRoles, visibilities } from "../../drizzle/schema/index.ts";
import { Conflict, InvalidInput, NotFound } from "../../platform/errors.ts";
import type { Deps } from "../../server/deps.ts";
import type { Field } from "../parts/form.tsx";
import { app, documentPath } from "../paths.ts";
import { timeText, type Values } from "../values.ts";
import { incidentFields, mostChoices, type Named } from "./choices.ts";
import { type Remains, remainsPath } from "./redaction.ts";

/** Where an action is offered, and by whom. */
export interface Place {
  context: Deps;
  actor: Actor;
  incident: IncidentDetail;
  /** Those who take part now. */
  participants: readonly Participant[];
  /** There are more than `participants`. */
  areMore: boolean;
  timeZone: string;
  /** What the action is about: `entry`, `task`, `link`, `person`, `role`, `step`. Of the address, or of the form. */
  about: Values;
}

interface Doing extends Place {
  values: Values;
  /** The client's, for the audit log. */
  address: string;
}

/** What somebody does to an incident with a form. Its page is `/app/incidents/N/<name>`, also where it is sent. */
export interface Action {
  title: string;
  /** What the button says. */
  button: string;
  about?: string;
  /** The documents that may have the words in question. */
  citedBy?(place: Place): Promise<Remains["documents"]>;
  /** It cannot be undone. */
  isDangerous?: boolean;
  fields(place: Place): Field[] | Promise<Field[]>;
  /** @returns where to go: a fragment of the incident's page, or another page; by default to its top */
  run(doing: Doing): Promise<string | undefined>;
}

const text = (label: string, more: Partial<Field> = {}): Field => ({
  name: "text",
  label,
  kind: "text",
  isRequired: true,
  ...more,
});
const hidden = (name: string, value: string): Field => ({ name, label: "", kind: "hidden", value });
const none = () => [];
const toEvent = ({ id }: { id: number }) => `#event-${id}`;
/** Also when it is not among the newest ones. */
const toOldEvent = ({ id }: { id: number }) => `?at=${id}#event-${id}`;

/** The fields of an incident that a change keeps. */
function kept(incident: IncidentDetail): IncidentFields & { id: number; version: number } {
  const {
    id,
    version,
    title,
    description,
    status,
    visibility,
    incidentTypeId,
    incidentPriorityId,
    resolution,
  } = incident;
  return {
    id,
    version,
    title,
    description,
    status,
    visibility,
    incidentTypeId,
    incidentPriorityId,
    resolution,
  };
}

/** A change of the status alone is made to the incident as it is now, not as the reader saw it. */
const state = (title: string, status: IncidentFields["status"], about?: string): Action => ({
  title,
  button: title,
  about,
  fields: none,
  run: async ({ context, actor, incident }) => {
    await updateIncident(context, actor, { ...kept(incident), status });
  },
});

/** Somebody who takes part, by their user name. */
async function findParticipant(
  { participants, areMore, context, actor, incident }: Place,
  email: string | undefined,
): Promise<Participant | undefined> {
  const found = participants.find(({ individual }) => individual.email === email);
  if (found || !areMore || email === undefined) return found;
  const of = { incidentId: incident.id, active: true, email, limit: 1 };
  return (await listParticipants(context, actor, of)).items[0];
}

/** The participant with this id or user name, or the reader. */
async function participantOf(place: Place, values: Values): Promise<Participant> {
  const { participants, areMore, context, actor } = place;
  const person = values.given("person");
  const listed = participants.find(({ id }) => String(id) === person);
  if (listed) return listed;
  if (person !== undefined && !areMore) throw new NotFound("There is no such participant in this incident");
  const named = person === undefined ? actor.user : parseUserName("person", person, context.config.domain);
  const found = await findParticipant(place, named);
  if (found) return found;
  if (person === undefined) throw new NotFound("You do not take part in this incident");
  throw new InvalidInput("person", "Nobody with this user name takes part in this incident");
}

const role = (values: Values): ParticipantRole => oneOf(values, "role", participantRoles);

function oneOf<T extends string>(values: Values, name: string, known: readonly T[]): T {
  const given = values.text(name) as T;
  if (!known.includes(given)) throw new InvalidInput(name, "Choose one of the list");
  return given;
}

const whom = ({ participants, areMore, about }: Place): Field => ({
  name: "person",
  label: "Participant",
  isRequired: true,
  value: about.given("person"),
  ...(areMore
    ? {
        kind: "line",
        suggestions: participants.map(({ individual: { email } }) => email),
        help: `A user name. The first ${participants.length} people are suggested`,
      }
    : { kind: "choice", choices: participants.map(({ id, individual: { name } }) => [String(id), name]) }),
});

const roleField = ({ about }: Place): Field => ({
  name: "role",
  label: "Role",
  kind: "choice",
  isRequired: true,
  value: about.given("role"),
  choices: participantRoles.filter((one) => one !== "reporter").map((one) => [one, one]),
});

/** The words of an entry of the timeline: one text, or the three of a status report. */
async function wordsOf({ context, actor, incident, about }: Place): Promise<Field[]> {
  const ids = { incidentId: incident.id, eventId: about.id("entry") };
  const event = await getEvent(context, actor, ids);
  const fields = [hidden("entry", String(event.id)), hidden("version", String(event.version))];
  if (event.kind !== "report.written") return [...fields, text("Text", { value: event.description })];
  const report = await getReport(context, actor, {
    incidentId: incident.id,
    reportId: Number(event.data.report_id),
  });
  return [...fields, ...reportFields(report)];
}

const reportFields = (value: { conditions: string; actions: string; needs: string }): Field[] => [
  {
    name: "conditions",
    label: "Conditions",
    kind: "text",
    value: value.conditions,
    help: "What is happening, and whom it hurts",
  },
  { name: "actions", label: "Actions", kind: "text", value: value.actions, help: "What is being done" },
  { name: "needs", label: "Needs", kind: "text", value: value.needs, help: "What or who is missing" },
];

const reportOf = (values: Values) => ({
  conditions: values.text("conditions"),
  actions: values.text("actions"),
  needs: values.text("needs"),
});

async function task(place: Doing, status: "Open" | "Resolved"): Promise<string> {
  const { context, actor, values } = place;
  const { id, version, description, owner, assignees, reminders, resolveBy } = await taskOf(place, values);
  const people = { owner: owner?.email ?? null, assignees: assignees.map(({ email }) => email) };
  await updateTask(context, actor, { id, version, description, ...people, reminders, resolveBy, status });
  return "#tasks";
}

/** @throws NotFound also for a task of another incident */
async function taskOf({ context, actor, incident }: Place, values: Values) {
  const found = await getTask(context, actor, values.id("task"));
  if (found.incidentId !== incident.id) throw new NotFound("There is no such task in this incident");
  return found;
}

const taskFields = (value: {
  description?: string;
  owner?: string;
  assignees?: string;
  resolveBy?: string;
}): Field[] => [
  text("What is to be done", { value: value.description }),
  {
    name: "assignees",
    label: "Assignees",
    kind: "line",
    value: value.assignees,
    help: "User names, separated by commas",
  },
  { name: "owner", label: "Owner", kind: "line", value: value.owner, help: "Who sees to it that it is done" },
  { name: "due", label: "Due", kind: "time", value: value.resolveBy, help: "By default in a day" },
];

const names = (values: Values, name: string) =>
  values
    .text(name)
    .split(/[\s,;]+/)
    .filter((one) => one !== "");

const entryOf = ({ incident, values }: Doing) => ({ incidentId: incident.id, eventId: values.id("entry") });

/** All actions, by the last part of their address. */
export const actions: Record<string, Action> = {
  note: {
    title: "Write a note",
    button: "Note",
    about: "For the timeline. Everybody who may read the incident sees it.",
    fields: () => [
      text("Note"),
      { name: "at", label: "When it happened", kind: "time", help: "By default now" },
    ],
    run: async ({ context, actor, incident, values, timeZone }) => {
      const at = values.time("at", timeZone);
      const wanted = { incidentId: incident.id, description: values.text("text"), at };
      return (at ? toOldEvent : toEvent)(await noteOnTimeline(context, actor, wanted));
    },
  },
  say: {
    title: "Send a message",
    button: "Message",
    about:
      "In the conversations of the incident, too. Only its recipient and you can read one to a single person.",
    fields: (place) => {
      const to = whom(place);
      return [
        {
          ...to,
          label: "To",
          isRequired: false,
          choices: [["", "everybody"], ...(to.choices ?? [])],
          help: to.help && `By default everybody. ${to.help}`,
        },
        text("Message"),
      ];
    },
    run: async (doing) => {
      const { context, actor, incident, values } = doing;
      const to = values.given("person") === undefined ? undefined : await participantOf(doing, values);
      const wanted = { incidentId: incident.id, text: values.text("text"), recipientId: to?.individual.id };
      const { id, eventId } = await say(context, actor, wanted);
      return eventId === null ? `?show=messages#message-${id}` : toEvent({ id: eventId });
    },
  },
  "status-report": {
    title: "Write a status report",
    button: "Send status report",
    about: "For everybody who waits for news. Leave empty what has not changed.",
    fields: () => reportFields({ conditions: "", actions: "", needs: "" }),
    run: async ({ context, actor, incident, values }) => {
      const { eventId } = await writeReport(context, actor, { incidentId: incident.id, ...reportOf(values) });
      return eventId === null ? undefined : toEvent({ id: eventId });
    },
  },
  task: {
    title: "Add a task",
    button: "Add task",
    fields: ({ actor }) => taskFields({ assignees: actor.user }),
    run: async ({ context, actor, incident, values, timeZone }) => {
      await createTask(context, actor, {
        incidentId: incident.id,
        documentId: null,
        description: values.text("text"),
        owner: values.given("owner") ?? null,
        assignees: names(values, "assignees"),
        reminders: true,
        resolveBy: values.time("due", timeZone),
      });
      return "#tasks";
    },
  },
  "task-done": {
    title: "Resolve a task",
    button: "Done",
    fields: ({ about }) => [hidden("task", about.text("task"))],
    run: (doing) => task(doing, "Resolved"),
  },
  "task-reopen": {
    title: "Reopen a task",
    button: "Reopen",
    fields: ({ about }) => [hidden("task", about.text("task"))],
    run: (doing) => task(doing, "Open"),
  },
  "task-edit": {
    title: "Change a task",
    button: "Save",
    fields: async (place) => {
      const { id, version, description, owner, assignees, resolveBy } = await taskOf(place, place.about);
      return [
        hidden("task", String(id)),
        hidden("version", String(version)),
        ...taskFields({
          description,
          owner: owner?.email,
          assignees: assignees.map(({ email }) => email).join(", "),
          resolveBy: timeText(resolveBy, place.timeZone),
        }),
      ];
    },
    run: async (doing) => {
      const { context, actor, values, timeZone } = doing;
      const { id, reminders, status, resolveBy } = await taskOf(doing, values);
      await updateTask(context, actor, {
        id,
        version: values.id("version"),
        description: values.text("text"),
        owner: values.given("owner") ?? null,
        assignees: names(values, "assignees"),
        reminders,
        status,
        resolveBy: values.time("due", timeZone, resolveBy) ?? resolveBy,
      });
      return "#tasks";
    },
  },
  "task-delete": {
    title: "Delete a task",
    button: "Delete permanently",
    about: "For one that was created by mistake. The timeline keeps what it said.",
    isDangerous: true,
    fields: ({ about }) => [hidden("task", about.text("task"))],
    run: async (doing) => {
      const { context, actor, values, address } = doing;
      const { id } = await taskOf(doing, values);
      await removeTask(context, actor, { id, address });
      return "#tasks";
    },
  },
  document: {
    title: "Add a document",
    button: "Add",
    fields: () => [
      { name: "name", label: "Name", kind: "line", isRequired: true },
      {
        name: "type",
        label: "Purpose",
        kind: "line",
        isRequired: true,
        value: "reference",
        suggestions: ["reference", "review", "incident"],
      },
      {
        name: "weblink",
        label: "Address",
        kind: "line",
        help: "Of a text that is elsewhere, such as a dashboard. Otherwise, you write it next",
      },
    ],
    run: async ({ context, actor, incident, values }) => {
      const weblink = values.given("weblink") ?? null;
      const { id } = await createDocument(context, actor, {
        name: values.text("name"),
        description: "",
        resourceType: values.text("type"),
        weblink,
        incidentId: incident.id,
        pluginSlug: null,
        resourceId: null,
      });
      return weblink === null ? `${documentPath(id)}/edit` : "#documents";
    },
  },
  join: {
    title: "Join",
    button: "Join",
    about: "You get what is sent to everybody who takes part.",
    fields: none,
    run: async ({ context, actor, incident }) => {
      await inviteParticipant(context, actor, {
        incidentId: incident.id,
        email: actor.user,
        roles: ["participant"],
      });
    },
  },
  leave: {
    title: "Leave",
    button: "Leave",
    about: "If the incident is restricted, you can no longer read it.",
    fields: ({ about }) => [hidden("person", about.text("person"))],
    run: async (doing) => {
      const { context, actor, incident, values } = doing;
      const { id: participantId, individual } = await participantOf(doing, values);
      await leaveIncident(context, actor, { incidentId: incident.id, participantId });
      const isHidden =
        individual.email === actor.user && incident.visibility === "Restricted" && !actor.admin;
      return isHidden ? app : "#people";
    },
  },
  command: {
    title: "Take command",
    button: "Take command",
    fields: ({ incident }) => [hidden("from", String(incident.commander?.id ?? ""))],
    run: async (doing) => {
      const { context, actor, incident, values } = doing;
      const incidentId = incident.id;
      const { commander } = incident;
      if (values.text("from") !== String(commander?.id ?? ""))
        throw new Conflict(`${commander?.name ?? "Nobody"} is the commander now`);
      const mine =
        (await findParticipant(doing, actor.user)) ??
        (await inviteParticipant(context, actor, { incidentId, email: actor.user, roles: ["participant"] }));
      // Somebody may have taken it meanwhile.
      const replaces = (await findParticipant(doing, commander?.email))?.id;
      await assumeRole(context, actor, { incidentId, participantId: mine.id, role: "commander", replaces });
      return "#people";
    },
  },
  people: {
    title: "Add people",
    button: "Add",
    fields: (place) => [
      {
        name: "email",
        label: "User name",
        kind: "line",
        isRequired: true,
        value: place.about.given("email"),
      },
      { ...roleField(place), value: place.about.given("role") ?? "participant" },
    ],
    run: async ({ context, actor, incident, values }) => {
      const { domain } = context.config;
      const [email = "", ...others] = names(values, "email");
      if (others.length > 0) throw new InvalidInput("email", "Add one person at a time");
      const whole = email.includes("@") || !domain ? email : `${email}@${domain}`;
      await inviteParticipant(context, actor, {
        incidentId: incident.id,
        email: whole,
        roles: [role(values)],
      });
      return "#people";
    },
  },
  role: {
    title: "Give a role",
    button: "Give",
    about: "There is one commander: the present one hands over.",
    fields: (place) => [whom(place), roleField(place)],
    run: async (doing) => {
      const { context, actor, incident, values } = doing;
      const { id: participantId } = await participantOf(doing, values);
      await assumeRole(context, actor, { incidentId: incident.id, participantId, role: role(values) });
      return "#people";
    },
  },
  renounce: {
    title: "Give up a role",
    button: "Give up",
    fields: (place) => [
      whom(place),
      { ...roleField(place), choices: participantRoles.map((one) => [one, one]) },
    ],
    run: async (doing) => {
      const { context, actor, incident, values } = doing;
      const { id: participantId } = await participantOf(doing, values);
      await renounceRole(context, actor, { incidentId: incident.id, participantId, role: role(values) });
      return "#people";
    },
  },
  stable: state("Stable", "Stable", "The harm is stopped, the work is not done."),
  reopen: state("Reopen", "Active", "The incident is Active again."),
  close: {
    title: "Close",
    button: "Close",
    about: "The work is done. Conversations are archived, and the cost is final.",
    fields: ({ incident }) => [
      {
        name: "resolution",
        label: "Resolution",
        kind: "text",
        value: incident.resolution ?? "",
        help: "What ended it, for those who read this next time",
      },
    ],
    run: async ({ context, actor, incident, values }) => {
      const resolution = values.given("resolution") ?? null;
      await updateIncident(context, actor, { ...kept(incident), status: "Closed", resolution });
    },
  },
  edit: {
    title: "Edit",
    button: "Save",
    fields: async ({ context, actor, incident, timeZone }) => {
      const { title, description, incidentTypeId, incidentPriorityId, visibility } = incident;
      const values: Record<string, string> = {
        title,
        description,
        type: String(incidentTypeId),
        priority: String(incidentPriorityId),
      };
      return [
        hidden("version", String(incident.version)),
        ...(await incidentFields(context, actor, (name) => values[name])),
        {
          name: "visibility",
          label: "Visibility",
          kind: "choice",
          isRequired: true,
          value: visibility,
          choices: visibilities.map((one) => [one, one]),
          help: "Restricted: only those who take part, and admins",
        },
        {
          name: "impact_start",
          label: "Impact began",
          kind: "time",
          value: timeText(incident.impactStartedAt, timeZone),
        },
        {
          name: "impact_end",
          label: "Impact ended",
          kind: "time",
          value: timeText(incident.impactEndedAt, timeZone),
        },
        ...(incident.status === "Closed"
          ? [
              {
                name: "resolution",
                label: "Resolution",
                kind: "text",
                value: incident.resolution ?? "",
              } as const,
            ]
          : []),
      ];
    },
    run: async ({ context, actor, incident, values, timeZone }) => {
      await updateIncident(context, actor, {
        ...kept(incident),
        version: values.id("version"),
        title: values.text("title"),
        description: values.text("description"),
        incidentTypeId: values.id("type"),
        incidentPriorityId: values.id("priority"),
        visibility: oneOf(values, "visibility", visibilities),
        impactStartedAt: values.time("impact_start", timeZone, incident.impactStartedAt) ?? null,
        impactEndedAt: values.time("impact_end", timeZone, incident.impactEndedAt) ?? null,
        resolution: incident.status === "Closed" ? (values.given("resolution") ?? null) : incident.resolution,
      });
    },
  },
  affected: {
    title: "What is affected",
    button: "Save",
    fields: async ({ context, actor, incident }) => {
      const query = { limit: mostChoices, sort: "name", filters: {} };
      const [all, others, now] = await Promise.all([
        listRecords(context, actor, services(context.registry), query),
        listRecords(context, actor, applications, query),
        getAffected(context, actor, incident.id),
      ]);
      const boxes = (prefix: string, known: readonly Named[], ticked: readonly Named[]): Field[] =>
        // Also those that the list is too short for, or that have vanished from their source.
        [...known, ...ticked.filter(({ id }) => !known.some((one) => one.id === id))].map(({ id, name }) => ({
          name: `${prefix}-${id}`,
          label: name,
          kind: "check",
          value: ticked.some((one) => one.id === id) ? "on" : undefined,
        }));
      return [
        ...boxes("service", all.items, now.services),
        ...boxes("application", others.items, now.applications),
      ];
    },
    run: async ({ context, actor, incident, values }) => {
      await setAffected(context, actor, {
        incidentId: incident.id,
        serviceIds: values.ticked("service"),
        applicationIds: values.ticked("application"),
      });
      return "#affected";
    },
  },
  link: {
    title: "Link with another incident",
    button: "Link",
    fields: () => [
      { name: "other", label: "Incident", kind: "line", isRequired: true, help: "Such as INC-41" },
      {
        name: "kind",
        label: "This incident is",
        kind: "choice",
        isRequired: true,
        choices: [
          ["related", "related to it"],
          ["duplicate", "a duplicate of it"],
        ],
      },
    ],
    run: async ({ context, actor, incident, values }) => {
      const name = values.text("other").trim();
      const linkedId = isIncidentName(name) ? await idOfName(context, name) : values.id("other");
      const kind = oneOf(values, "kind", ["related", "duplicate"]);
      await createLink(context, actor, { incidentId: incident.id, linkedId, kind });
      return "#links";
    },
  },
  unlink: {
    title: "Remove a link",
    button: "Remove",
    fields: ({ about }) => [hidden("link", about.text("link"))],
    run: async ({ context, actor, incident, values }) => {
      await removeLink(context, actor, { incidentId: incident.id, linkId: values.id("link") });
      return "#links";
    },
  },
  amend: {
    title: "Correct an entry",
    button: "Save",
    about: "The earlier text is kept, and the timeline says that it was corrected.",
    fields: wordsOf,
    run: async (doing) => {
      const { context, actor, values } = doing;
      const text = values.isTicked("text") ? { description: values.text("text") } : reportOf(values);
      const change = { ...entryOf(doing), version: values.id("version"), text };
      return toOldEvent(await amendEntry(context, actor, change));
    },
  },
  withdraw: {
    title: "Withdraw an entry",
    button: "Withdraw",
    about: "Nobody but admins can read its text any more.",
    fields: async (place) => (await wordsOf(place)).filter(({ kind }) => kind === "hidden"),
    run: async (doing) => {
      const { context, actor, values } = doing;
      const change = { ...entryOf(doing), version: values.id("version") };
      return toOldEvent(await withdrawEntry(context, actor, change));
    },
  },
  redact: {
    title: "Redact an entry",
    button: "Redact",
    about: "Removes the text from the database permanently. Plugins and backups may still have it.",
    citedBy: ({ context, actor, incident, about }) =>
      documentsWithText(context, actor, { incidentId: incident.id, eventId: about.id("entry") }),
    isDangerous: true,
    fields: ({ about }) => [
      hidden("entry", about.text("entry")),
      {
        name: "reason",
        label: "Reason",
        kind: "line",
        isRequired: true,
        help: "Everybody who may read the incident sees it",
      },
    ],
    run: async (doing) => {
      const { context, actor, values, address } = doing;
      const ids = entryOf(doing);
      // Before the redaction, which locks the incident: this reads all versions of their texts.
      const documents = await documentsWithText(context, actor, ids);
      const wanted = { ...ids, reason: values.text("reason"), address };
      const { event, receivedBy: plugins } = await redactEvent(context, actor, wanted);
      if (documents.length + plugins.length === 0) return toOldEvent(event);
      return remainsPath(ids.incidentId, event.id, { plugins, documents });
    },
  },
  retry: {
    title: "Try again",
    button: "Try again",
    fields: ({ about }) => [hidden("step", about.text("step"))],
    run: async ({ context, actor, incident, values }) => {
      await retryFlow(context, actor, { incidentId: incident.id, step: values.given("step") });
      return "#steps";
    },
  },
  delete: {
    title: "Delete the incident",
    button: "Delete permanently",
    about:
      "For one that was created by mistake. Its timeline, reports, tasks and messages are deleted as well.",
    isDangerous: true,
    fields: none,
    run: async ({ context, actor, incident, address }) => {
      await removeIncident(context, actor, { id: incident.id, address });
      return app;
    },
  },
};

/** The steps that an incident of this status can take. */
export const transitions: Record<(typeof incidentStatuses)[number], readonly string[]> = {
  Active: ["stable", "close"],
  Stable: ["close", "reopen"],
  Closed: ["reopen"],
};
