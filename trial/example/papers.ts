import { addressOf, nameOf } from "./cast.ts";
import { type Found, foundTask, goneTask, writtenTasks } from "./chores.ts";
import type { ExampleDocument, ExampleTask } from "./example.ts";
import type { Scene } from "./scene.ts";
import { dayOf, hoursAfter, hoursBefore, hoursBetween } from "./time.ts";

const second = 1 / 3600;
/** Hours until incident-task-sync has read a document. */
const readAfter = 30 * second;

export interface Papers {
  documents: Omit<ExampleDocument, "foundTermIds">[];
  tasks: ExampleTask[];
}

/**
 * How far incident-task-sync has come with a document: it knows all of its tasks; it has never seen it; it knows it as it
 * was before the first task was done.
 */
type Synced = "all" | "nothing" | "before";

/** The incident's own document and, once it is stable, its review; with the tasks that were found in them. */
export function papers(scene: Scene, synced: Synced): Papers {
  const own = incidentPaper(scene, synced);
  const review = reviewPaper(scene, synced === "all" ? "all" : "nothing");
  const all = [own, ...(review ? [review] : [])];
  return {
    documents: all.flatMap(({ documents }) => documents),
    tasks: [...all.flatMap(({ tasks }) => tasks), ...writtenTasks(scene)],
  };
}

function incidentPaper(scene: Scene, synced: Synced): Papers {
  const { scenario, name, reportedAt, stableAt, cast, world, random } = scene;
  const createdAt = hoursAfter(reportedAt, 3 * second);
  const template = world.organisation.templates.find(({ type }) => type === scenario.type);
  const form =
    world.organisation.documents.find(({ id }) => id === template?.documentId)?.content?.text ?? "";
  const commander = cast.inRole("commander", hoursAfter(reportedAt, 1 / 60)) ?? scenario.reporter;
  const values: Readonly<Record<string, string>> = {
    ...{ name, title: scenario.title, description: scenario.description, type: scenario.type },
    ...{ priority: scenario.priority, reporter: nameOf(scenario.reporter), commander: nameOf(commander) },
    reported_at: reportedAt.toISOString(),
  };
  const filled = form.replace(/\{\{(\w+)\}\}/g, (all, key: string) => values[key] ?? all);
  const [head = "", chores = ""] = filled.split("## To do\n");
  const lines = chores.matchAll(/^- \[ \] (.+)$/gm).map(([, text = ""], index): Found => {
    const doneAt =
      stableAt ?? (index === 0 ? hoursAfter(reportedAt, 0.9 * hoursBetween(reportedAt, scene.end)) : null);
    return { text, who: random.pick(cast.active()), doneAt };
  });
  const known = `- ${scenario.impact}\n- ${scenario.finding}\n- ${scenario.action}\n`;
  return paper(scene, {
    ...{ name: `${name}: ${scenario.title}`, resourceType: "incident", createdAt, lines: [...lines], synced },
    description: `What we know of ${name} and what is to be done`,
    text: (tasks) => `${head}${known}\n## To do\n\n${tasks}`,
  });
}

function reviewPaper(scene: Scene, synced: Synced): Papers | undefined {
  const { scenario, name, reportedAt, stableAt, closedAt, cast, random, world } = scene;
  if (!stableAt) return undefined;
  const createdAt = hoursAfter(stableAt, hoursBetween(stableAt, closedAt ?? world.now) * 0.6);
  const lines = scenario.followUps.map((text, index): Found => {
    const due = endOfDay(hoursAfter(createdAt, 24 * (7 + 7 * index)));
    const doneAt = hoursBefore(due, random.between(2, 150));
    const done = doneAt > createdAt && doneAt < world.now && random.chance(0.85);
    return { text, who: random.pick(cast.everybody()), due, doneAt: done ? doneAt : null };
  });
  const lasted = Math.max(1, Math.round(hoursBetween(reportedAt, stableAt)));
  const luck = [
    "It was a weekday, and everybody was awake.",
    "Somebody had written the runbook the month before.",
    "A shop told us before our own alerts did.",
    "The one who had built it was in the room.",
  ];
  return paper(scene, {
    ...{ name: `Review of ${name}`, resourceType: "review", createdAt, lines, synced },
    description: `What ${name} taught us`,
    text: (tasks) => `# Review of ${name}: ${scenario.title}

It took ${lasted} ${lasted === 1 ? "hour" : "hours"} and ${cast.everybody().length} people until it was stable. Nobody is to blame.

## What happened

${scenario.description} ${scenario.impact}

## Why

${scenario.finding}

## What we did

${scenario.resolution}

## Where we were lucky

${random.pick(luck)}

## To do

${tasks}`,
  });
}

interface Sheet {
  name: string;
  description: string;
  resourceType: "incident" | "review";
  createdAt: Date;
  lines: Found[];
  synced: Synced;
  text: (tasks: string) => string;
}

/** The document with its tasks as lines `- [ ] text @who (due day)`, and the rows of those that are known. */
function paper(scene: Scene, sheet: Sheet): Papers {
  const { world, id: incidentId, cast, tell, at } = scene;
  const { name, description, resourceType, createdAt, lines, synced } = sheet;
  const id = world.next("document");
  const marked = lines.map(({ text, who, due, doneAt }) => {
    const day = due ? ` (due ${dayOf(due)})` : "";
    return `- [${doneAt ? "x" : " "}] ${text} @${who}${day}\n`;
  });
  const changes = lines.flatMap(({ doneAt }) => doneAt ?? []);
  const updatedAt = changes.reduce((latest, date) => (date > latest ? date : latest), createdAt);
  const version = 1 + new Set(changes.map(Number)).size;
  const author = resourceType === "review" ? cast.inRole("commander", createdAt) : undefined;
  at(createdAt, (date) =>
    tell({
      at: date,
      actor: author === undefined ? "system" : addressOf(author),
      kind: "document.created",
      description: `Document added: ${name}`,
      data: { document_id: id },
    }),
  );
  const document = {
    ...{ id, name, description, resourceType, incidentId, weblink: null, createdAt, updatedAt },
    ...{ types: [], priorities: [], termIds: [] },
    content: { text: sheet.text(marked.join("")), version },
  };
  if (synced === "nothing")
    return { documents: [{ ...document, tasksOf: null, tasksReadAt: null }], tasks: [] };
  const read =
    synced === "all"
      ? { tasksOf: version, tasksReadAt: hoursAfter(updatedAt, readAfter) }
      : { tasksOf: 1, tasksReadAt: hoursAfter(createdAt, readAfter) };
  const seen = synced === "all" ? lines : lines.map((line) => ({ ...line, doneAt: null }));
  const foundAt = hoursAfter(createdAt, readAfter);
  const tasks = seen.map((line, index) =>
    foundTask(scene, line, { id, at: foundAt, externalId: `${id}-${index + 1}` }),
  );
  return {
    documents: [{ ...document, ...read }],
    tasks: [...tasks, ...goneTask(scene, { id, at: foundAt })],
  };
}

function endOfDay(date: Date): Date {
  return new Date(new Date(date).setUTCHours(23, 59, 59, 999));
}
