import { expect, test } from "bun:test";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { noPlugins } from "../../tests/support/domain/plugins.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { startTestServer } from "../../tests/support/http/server.ts";
import { StreamClient } from "../../tests/support/http/stream.ts";
import { until } from "../../tests/support/process/until.ts";
import { startTestTelemetry } from "../../tests/support/telemetry.ts";

test("counts open streams, and ended ones by reason", async () => {
  await using started = await startTestTelemetry();
  await using server = await startTestServer(noPlugins, pluginsOf(), started.telemetry);
  const { incidentId } = await insertIncident(server.db, server.clock.now());
  const alice = await personOf(server, "alice@example.com");
  const bob = await personOf(server, "bob@example.com");
  const one = await StreamClient.open(alice, `/incidents/${incidentId}/stream`);
  const bobs = [
    await StreamClient.open(bob, `/incidents/${incidentId}/stream`),
    await StreamClient.open(bob, "/incidents/stream"),
  ];
  const values = async (name: string) =>
    Object.fromEntries(
      [...((await started.scrape()).get(name)?.samples ?? [])].map(({ labels, value }) => [
        [labels.of, labels.reason].filter(Boolean).join(" "),
        value,
      ]),
    );
  expect(await values("svc_streams")).toEqual({ incident: 2, all: 1 });
  one.leave();
  await until("the stream to end", async () => (await values("svc_streams")).incident === 1);
  await bob.call("DELETE", "/tokens/current");
  await Promise.all(bobs.map((stream) => stream.rest()));
  await until("the streams to end", async () => (await values("svc_streams")).incident === 0);
  expect(await values("svc_streams")).toEqual({ incident: 0, all: 0 });
  expect(await values("svc_streams_ended_total")).toEqual({
    "incident left": 1,
    "incident signed_out": 1,
    "all signed_out": 1,
  });
});
