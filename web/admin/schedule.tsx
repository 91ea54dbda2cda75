import { Elysia } from "elysia";
import { useContext } from "preact/hooks";
import { databaseClock } from "../../core/database_clock.ts";
import { startTask } from "../../core/schedule/operate.ts";
import {
  laggards,
  type ScheduleStatus,
  scheduleStatus,
  type TaskStatus,
} from "../../core/schedule/status.ts";
import { findTask, periodText } from "../../core/schedule/tasks.ts";
import { durationText } from "../../platform/duration.ts";
import { InvalidInput } from "../../platform/errors.ts";
import { Alert, type Trouble } from "../pages/forms.tsx";
import { Clock } from "../parts/time.tsx";
import { adminPath } from "../paths.ts";
import type { PageContent, Site } from "../site.tsx";
import { admins, adminsSubmit, Crumb, RowForm, Table } from "./shared.tsx";

const path = `${adminPath}/schedule`;

/** What `svc scheduler status` shows, and a button that starts a task. */
export function schedulePages(site: Site) {
  const { deps } = site;

  async function view(trouble?: Trouble): Promise<PageContent> {
    const { db, config } = deps;
    const status = await scheduleStatus({ db, databaseClock, config });
    return {
      title: "Schedule",
      here: "admin",
      content: <Schedule status={status} timezone={config.timezone} trouble={trouble} />,
    };
  }

  const start = adminsSubmit(site, async ({ visitor }, values) => ({
    run: async (context) => {
      const task = findTask(values.text("task"));
      if (!task) throw new InvalidInput("task", "Choose one of the list");
      await startTask(context, { name: task.name, by: visitor.actor.user });
      return path;
    },
    again: async (fill) => view(fill([]).trouble),
  }));

  return new Elysia({ name: "schedule pages" })
    .get(
      "/schedule",
      admins(site, () => view()),
    )
    .post("/schedule", start);
}

function Schedule({
  status,
  timezone,
  trouble,
}: {
  status: ScheduleStatus;
  timezone: string;
  trouble: Trouble | undefined;
}) {
  const alive = status.workers.filter((worker) => worker.alive);
  return (
    <>
      <Crumb />
      <h1>Schedule</h1>
      <Alert trouble={trouble} />
      <ul class="meta">
        {laggards(status).map((one) => (
          <li key={one} class="late">
            {one}
          </li>
        ))}
        {alive.map(({ id, host, pid, startedAt }) => (
          <li key={id}>
            Worker on <bdi>{host}</bdi>, pid {pid}, since <Clock at={startedAt} />
          </li>
        ))}
      </ul>
      <Table columns={[["Task"], ["Last run"], ["Failures in 24 h", "wide num"], ["Start", "num"]]}>
        {status.tasks.map((task) => (
          <tr key={task.name}>
            <td class="keep">
              <b>{task.name}</b>
              <br />
              <small class="quiet">
                {timingText(task, timezone)},{" "}
                {task.next ? (
                  <>
                    next <Clock at={task.next} />
                  </>
                ) : task.state === "paused" ? (
                  "paused"
                ) : (
                  "nothing due"
                )}
              </small>
            </td>
            <td>
              <LastRun task={task} now={status.now} />
            </td>
            <td class="wide num">
              {task.failures}{" "}
              {task.failing && (
                <span class="late">
                  since <Clock at={task.failing.since} />
                </span>
              )}
            </td>
            <td class="num">
              {task.state !== "running" && task.state !== "paused" && (
                <RowForm
                  action={path}
                  name="task"
                  value={task.name}
                  button="Start"
                  label={`Start ${task.name} now`}
                />
              )}
            </td>
          </tr>
        ))}
      </Table>
      <p class="quiet">
        A worker starts what you ask for within half a minute, unless the task is running or paused.
      </p>
    </>
  );
}

function timingText({ name }: TaskStatus, timezone: string): string {
  const { timing } = findTask(name)!;
  return "daily" in timing
    ? `daily at ${timing.daily.slice(0, 5)} in ${timezone}`
    : `every ${periodText(timing)}`;
}

/** When it began, how long it took, and how it ended. */
function LastRun({ task: { last, state, failingPlugins }, now }: { task: TaskStatus; now: Date }) {
  if (!last)
    return <span class="quiet">{state === "unknown" ? "No worker has seen it yet" : "none yet"}</span>;
  const { startedAt, finishedAt, leaseUntil, trigger, result, error } = last;
  const isWaiting = last.state === "Running" && leaseUntil !== null && leaseUntil <= now;
  const { done, skipped, failed } = result;
  return (
    <>
      <span class={last.state === "Failed" || last.state === "Missed" ? "late" : undefined}>
        {isWaiting ? "Waits for a worker" : last.state}
      </span>{" "}
      <Clock at={startedAt ?? last.slot} />
      {startedAt && finishedAt && `, ${tookText(startedAt, finishedAt)}`}
      {trigger === "eager" && ", by hand"}
      <small class="quiet block">
        {done !== undefined && `${done} done, ${skipped} skipped, ${failed} failed`}
        {error && <bdi>{error}</bdi>}
        {failingPlugins.map(({ plugin, since }) => (
          <span key={plugin} class="late">
            {plugin} fails since <Clock at={since} />
          </span>
        ))}
      </small>
    </>
  );
}

function tookText(from: Date, to: Date): string {
  const seconds = (to.getTime() - from.getTime()) / 1000;
  return seconds < 60 ? `${seconds.toFixed(1)} s` : durationText(from, to);
}
