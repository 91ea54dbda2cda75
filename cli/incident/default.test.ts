import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CliUser, cliUser } from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";

let { server, member, reported } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, member, reported } = given);
});

/** Takes part in nothing at first. */
let carol: CliUser;
beforeAll(async () => {
  carol = await cliUser(server, "carol@example.com");
});

describe("the incident of a command", () => {
  test("that does not exist is refused, with a similar one", async () => {
    expect(await carol.svc("incident", "view", "INC-12")).toEqual({
      code: 1,
      stdout: "",
      stderr: "svc: there is no incident INC-12 that you may see. Did you mean INC-1 (Disk full)?\n",
    });
    expect((await carol.svc("incident", "view", "4711")).stderr).not.toContain("Did you mean");
  });

  test("that is none is a fault of the command line, with those that match", async () => {
    const { code, stderr } = await carol.svc("incident", "view", "disk");
    expect(code).toBe(2);
    expect(stderr).toContain('svc: ID: "disk" is not an incident, such as INC-7, its number or its URL');
    expect(stderr).toContain("Did you mean INC-1 (Disk full)?");
  });

  test("has no name of another kind", async () => {
    const person = await cliUser(server, "carol@example.com");
    const fault = ': "FOO-44" is not an incident, such as INC-7, its number or its URL';
    for (const words of [["view"], ["use"], ["link", "INC-1"]]) {
      const { code, stderr } = await person.svc("incident", ...words, "FOO-44");
      expect([code, stderr]).toEqual([2, expect.stringContaining(`svc: ID${fault}`)]);
    }
    person.env.SVC_INCIDENT = "FOO-44";
    const { code, stderr } = await person.svc("incident", "view");
    expect([code, stderr]).toEqual([2, expect.stringContaining(`svc: SVC_INCIDENT${fault}`)]);
  });

  test("of another server is refused", async () => {
    const { code, stderr } = await carol.svc("incident", "view", "https://svc.example.test/incidents/1");
    expect(code).toBe(2);
    expect(stderr).toContain(`is not an incident of ${server.url}; for another server, add --server`);
  });

  test("is the only active one, else SVC_INCIDENT, else the one in use, else none", async () => {
    const person = await cliUser(server, "alice@example.com");
    const shown = async () => {
      const { code, stdout, stderr } = await person.svc("incident", "view", "--json");
      return code === 0 ? JSON.parse(stdout).name : [code, JSON.parse(stderr).error.message];
    };
    expect(await shown()).toBe("INC-1");
    const another = await reported("Second");
    await member.call("POST", `/incidents/${another.id}/participants`, { email: "alice" });
    expect(await shown()).toEqual([
      2,
      `which incident? Name it, set SVC_INCIDENT, or run svc incident use ID (you have several: ${another.name}, INC-1)`,
    ]);
    expect(await person.svc("incident", "use", another.name)).toEqual({
      code: 0,
      stdout: "",
      stderr: `${another.name}: Second\n`,
    });
    expect(await shown()).toBe(another.name);
    person.env.SVC_INCIDENT = "INC-1";
    expect(await shown()).toBe("INC-1");
    person.env.SVC_INCIDENT = "INC-0815";
    expect(await shown()).toMatchObject([2, expect.stringContaining("SVC_INCIDENT: ")]);
    delete person.env.SVC_INCIDENT;
    await person.svc("incident", "use", "--none");
    expect(await shown()).toMatchObject([2, expect.stringContaining("which incident?")]);
    const chooser = person.with({
      canAsk: () => true,
      choose: async (question, choices) => {
        expect(question).toBe("Which incident?");
        expect(choices.map(({ label }) => label)).toEqual([`${another.name}  Second`, "INC-1  Disk full"]);
        return choices[0]!.value;
      },
    });
    expect(JSON.parse((await chooser.svc("incident", "view", "--json")).stdout).name).toBe(another.name);
  });

  test("in use that is gone, or overridden, says so", async () => {
    const person = carol.elsewhere();
    await person.svc("inc", "use", "INC-1");
    const file = join(person.home, "svc/incident.json");
    writeFileSync(file, readFileSync(file, "utf8").replace(/"id":\d+/, '"id":999999'));
    expect(await person.svc("inc", "view")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^svc: INC-1, the incident in use, is gone, or you may not see it/),
    });
    person.env.SVC_INCIDENT = "INC-1";
    expect((await person.svc("inc", "use", "INC-1")).stderr).toBe(
      "INC-1: Disk full\nSVC_INCIDENT is set, and takes precedence: INC-1\n",
    );
  });

  test("in use is that of one server", async () => {
    const person = await cliUser(server, "dave@example.com");
    const other = { server: "https://svc.example.test", id: 1, name: "INC-1" };
    await person.svc("incident", "use", "INC-1");
    writeFileSync(join(person.home, "svc/incident.json"), JSON.stringify(other));
    const { code, stderr } = await person.svc("incident", "view");
    expect([code, stderr]).toEqual([2, expect.stringContaining("you have no active incident")]);
    expect((await person.svc("incident", "current")).code).toBe(1);
    writeFileSync(join(person.home, "svc/incident.json"), "{");
    expect((await person.svc("incident", "view")).stderr).toContain(
      "is corrupt; to fix it: svc incident use ID",
    );
  });

  test("in use is shown, for a prompt without the server", async () => {
    const person = await cliUser(server, "erin@example.com");
    expect(await person.svc("incident", "current", "--short")).toEqual({ code: 1, stdout: "", stderr: "" });
    await person.svc("incident", "use", "INC-1");
    expect((await person.svc("incident", "current")).stdout).toBe("INC-1  Active  Disk full\n");
    const offline = person.with({ fetch: () => Promise.reject(new Error("no network")) });
    expect(await offline.svc("incident", "current", "--short")).toEqual({
      code: 0,
      stdout: "INC-1\n",
      stderr: "",
    });
  });
});
