import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anchorsOf } from "../tests/support/anchors.ts";
import { ensure, programs } from "../tests/support/programs.ts";

/** The shipped alert rules, evaluated by Prometheus' own tool. */

const root = join(import.meta.dir, "..");
const file = join(import.meta.dir, "alerts.yaml");

interface Rule {
  alert: string;
  expr: string;
  labels?: { severity?: string };
  annotations?: { summary?: string; runbook_url?: string };
}
const { groups } = Bun.YAML.parse(readFileSync(file, "utf8")) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

let directory: string;
beforeAll(() => {
  ensure(programs.prometheus);
  directory = mkdtempSync(join(tmpdir(), "svc-alerts-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Runs promtool, which must succeed. */
function promtool(...args: string[]): void {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["promtool", ...args]);
  expect([exitCode, exitCode === 0 ? "" : `${stdout}${stderr}`]).toEqual([0, ""]);
}

/** Values of a series, one a minute; undefined removes a series. */
type Series = Record<string, string | undefined>;

const minutes = 30 * 60;
const steady = (value: number) => `${value}x${minutes}`;
/** The value that each minute adds. */
const rising = (step: number) => `0+${step}x${minutes}`;

const server = { instance: "a", job: "svc-server" };
const worker = { instance: "c", job: "svc-scheduler" };
const named = (name: string, labels: Record<string, string>) =>
  `${name}{${Object.entries(labels)
    .map(([key, value]) => `${key}="${value}"`)
    .join(",")}}`;

const up = named("up", server);
const otherUp = named("up", { ...server, instance: "b" });
const workerUp = named("up", worker);
const requests = (status: string) =>
  named("http_server_request_duration_seconds_count", { ...server, http_response_status_class: status });
const pending = named("db_client_connection_pending_requests", {
  ...server,
  db_client_connection_pool_name: "server",
});
const process = named("svc_worker_up", { ...server, worker: "0" });
const workers = named("svc_schedule_workers", worker);
const lag = named("svc_schedule_lag_seconds", { ...worker, task: "data-sync" });
const tasked = { ...worker, task: "data-sync" };
const failing = named("svc_schedule_failing", tasked);
const failedRatio = named("svc_schedule_failed_ratio", tasked);
const pluginFailing = named("svc_schedule_plugin_failing_seconds", { ...tasked, plugin: "wiki" });
const calls = (outcome: string) =>
  named("svc_plugin_call_duration_seconds_count", { ...worker, plugin: "wiki", method: "text", outcome });
const dead = named("svc_deliveries", { ...worker, state: "dead" });
const stuck = named("svc_leases_stuck", worker);
const dump = "svc_backup_last_success_timestamp_seconds";
const deployment = named("kube_deployment_created", { namespace: "svc", deployment: "svc-server" });
const job = { namespace: "svc", cronjob: "svc-backup" };
const [created, succeeded] = [
  named("kube_cronjob_created", job),
  named("kube_cronjob_status_last_successful_time", job),
];

const fromWorker: Series = {
  [workerUp]: steady(1),
  [named("svc_build_info", worker)]: steady(1),
  [workers]: steady(2),
  [lag]: steady(5),
  [failing]: steady(0),
  [failedRatio]: steady(0.1),
  [calls("ok")]: rising(2),
  [calls("failed")]: rising(1),
  [dead]: steady(0),
  [stuck]: steady(0),
};
const fromServers: Series = {
  [up]: steady(1),
  [otherUp]: steady(1),
  [named("svc_build_info", server)]: steady(1),
  [requests("2xx")]: rising(6000),
  [requests("5xx")]: rising(1),
  [pending]: steady(0),
  [process]: steady(1),
};
const kubernetes: Series = { [deployment]: steady(0), [created]: steady(0), [succeeded]: rising(60) };
const compose: Series = { ...fromServers, ...fromWorker, [dump]: rising(60) };
const cluster: Series = { ...fromServers, ...fromWorker, ...kubernetes };
/** Collectors and Prometheus' OTLP receiver have no `up`. */
const otlp: Series = { ...compose, [up]: undefined, [otherUp]: undefined, [workerUp]: undefined };

/** What Prometheus has of a part that it cannot reach: its `up`, and no other series. */
function unreachable(part: Series): Series {
  return Object.fromEntries(
    Object.keys(part).map((series) => [series, series.startsWith("up{") ? steady(0) : undefined]),
  );
}
/** What it has of a part that service discovery does not find. */
const gone = (part: Series): Series =>
  Object.fromEntries(Object.keys(part).map((series) => [series, undefined]));

const noDatabase = Object.fromEntries(
  [workers, lag, failing, failedRatio, dead, stuck].map((series) => [series, undefined]),
);

/** A state of an installation, and the alerts that fire in it. */
const states: [string, Series, ...string[]][] = [
  ["compose is healthy", compose],
  ["a cluster is healthy", cluster],
  ["metrics arrive over OTLP", otlp],
  ["no server is reached", { ...compose, ...unreachable(fromServers) }, "NoServer", "ServerIsDown"],
  ["no server is found", { ...compose, ...gone(fromServers) }, "NoServer"],
  ["no server sends over OTLP", { ...otlp, ...gone(fromServers) }, "NoServer"],
  ["one server is down", { ...compose, [otherUp]: steady(0) }, "ServerIsDown"],
  ["a process of a server is down", { ...compose, [process]: steady(0) }, "ServerIsDown"],
  ["no worker is reached", { ...compose, ...unreachable(fromWorker) }, "NoWorker", "WorkerIsDown"],
  ["no worker is found", { ...compose, ...gone(fromWorker) }, "NoWorker"],
  ["no worker sends over OTLP", { ...otlp, ...gone(fromWorker) }, "NoWorker"],
  ["no worker has a heartbeat", { ...compose, [workers]: steady(0) }, "NoWorker"],
  ["the database does not answer", { ...compose, ...noDatabase }, "DatabaseDoesNotAnswer"],
  ["the same, over OTLP", { ...otlp, ...noDatabase }, "DatabaseDoesNotAnswer"],
  [
    "everything is down",
    { ...cluster, ...gone(fromServers), ...gone(fromWorker), ...gone(kubernetes) },
    ...["NoBackup", "NoServer", "NoWorker"],
  ],
  ["requests fail", { ...compose, [requests("5xx")]: rising(60) }, "RequestsFail"],
  ["requests wait", { ...compose, [pending]: steady(3) }, "RequestsWaitForConnections"],
  ["a task is late", { ...compose, [lag]: steady(61) }, "ScheduleIsLate"],
  ["a task keeps failing", { ...compose, [failing]: steady(1) }, "TaskFails"],
  ["most items fail", { ...compose, [failedRatio]: steady(0.6) }, "ItemsFail"],
  ["a plugin fails in a task", { ...compose, [pluginFailing]: rising(60) }, "PluginFailsInTask"],
  ["all calls of a plugin fail", { ...compose, [calls("ok")]: steady(7) }, "PluginFails"],
  ["messages are dead", { ...compose, [dead]: steady(1) }, "DeadDeliveries"],
  ["credentials are stuck", { ...compose, [stuck]: steady(1) }, "AccessIsNotRevoked"],
  ["the dump is old", { ...compose, [dump]: steady(0) }, "BackupIsOld"],
  ["there is no dump", { ...compose, [dump]: undefined }, "NoBackup"],
  ["the job fails", { ...cluster, [succeeded]: steady(0) }, "BackupIsOldInKubernetes"],
  ["the job has never succeeded", { ...cluster, [succeeded]: undefined }, "BackupIsOldInKubernetes"],
  ["there is no job", { ...cluster, [created]: undefined, [succeeded]: undefined }, "NoBackupInKubernetes"],
];

/** Fails unless exactly these alerts fire at this minute. */
function expectFiring(series: Series, firing: readonly string[], minute: number): void {
  const input_series = Object.entries(series).flatMap(([name, values]) =>
    values === undefined ? [] : [{ series: name, values }],
  );
  const check = {
    expr: `group by (alertname) (ALERTS{alertstate="firing"})`,
    eval_time: `${minute}m`,
    exp_samples: firing.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
  };
  const tests = [{ interval: "1m", input_series, promql_expr_test: [check] }];
  const path = join(directory, "test.yaml");
  // JSON is YAML.
  writeFileSync(path, JSON.stringify({ rule_files: [file], evaluation_interval: "1m", tests }));
  promtool("test", "rules", path);
}

test("Prometheus accepts the rules", () => promtool("check", "rules", "--lint-fatal", file));

test.each(states)("when %s, the right alerts fire", (_, series, ...firing) => {
  const isHealthy = firing.length === 0;
  const isAboutAge = firing.some((alert) => alert.startsWith("BackupIsOld"));
  // Longer than a dump may be old, where that matters: each hour takes promtool a while.
  expectFiring(series, firing, (isHealthy || isAboutAge ? 29 : 2) * 60);
});

test("nothing fires while everything restarts, for a minute after an hour", () => {
  const interrupted = Object.entries({ ...fromServers, ...fromWorker }).map(([name, values = ""]) => {
    if (name.startsWith("up{")) return [name, `1x59 0x1 1x${minutes}`];
    return [name, values.startsWith("0+") ? values : `${values.split("x")[0]}x59 stale _ ${values}`];
  });
  const series: Series = { ...compose, ...Object.fromEntries(interrupted) };
  for (const minute of [60, 61, 62, 65]) expectFiring(series, [], minute);
});

test("every rule has a state in which it fires", () => {
  const names = rules.map(({ alert }) => alert);
  expect(names.filter((name) => !states.some(([, , ...firing]) => firing.includes(name)))).toEqual([]);
});

describe.each(rules)("$alert", ({ alert, labels, annotations }) => {
  test("has a severity, a summary, and a runbook that exists", () => {
    expect(labels?.severity).toBeOneOf(["critical", "warning"]);
    expect(annotations?.summary).toBeTruthy();
    const [page = "", anchor = ""] = annotations?.runbook_url?.split("#") ?? [];
    expect([alert, anchorsOf(readFileSync(join(root, page), "utf8"))]).toEqual([
      alert,
      expect.arrayContaining([anchor]),
    ]);
  });
});
