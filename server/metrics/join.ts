/**
 * Joins the metrics of all workers: each metric once, and each series with its worker's number. A worker that did not
 * answer in time (undefined) is reported as down.
 */
export function joinMetrics(texts: readonly (string | undefined)[]): string {
  const families = new Map<string, { head: string; samples: string[] }>();
  for (const [worker, text] of texts.entries()) {
    for (const { name, head, samples } of familiesOf(text ?? "")) {
      const family = families.get(name) ?? { head, samples: [] };
      family.samples.push(...samples.map((sample) => labelled(sample, worker)));
      families.set(name, family);
    }
  }
  const up = {
    head: "# HELP svc_worker_up Whether a worker answered in time when it was asked for its metrics\n# TYPE svc_worker_up gauge",
    samples: texts.map((text, worker) => labelled(`svc_worker_up ${text === undefined ? 0 : 1}`, worker)),
  };
  return [up, ...families.values()].map(({ head, samples }) => `${[head, ...samples].join("\n")}\n`).join("");
}

interface Family {
  name: string;
  head: string;
  samples: string[];
}

/** Parses a text into metrics, with their metadata and samples. */
function familiesOf(text: string): Family[] {
  const families: Family[] = [];
  for (const line of text.split("\n")) {
    const [, name] = line.match(/^# (?:HELP|UNIT|TYPE) (\S+)/) ?? [];
    const last = families.at(-1);
    if (name === undefined) {
      if (line !== "" && !line.startsWith("#")) last?.samples.push(line);
    } else if (last?.name === name) last.head += `\n${line}`;
    else families.push({ name, head: line, samples: [] });
  }
  return families;
}

/** Adds a first label to `name{a="b"} 1` or `name 1`. */
function labelled(sample: string, worker: number): string {
  const [, name = "", rest = ""] = sample.match(/^([^{\s]+)(.*)$/) ?? [];
  return rest.startsWith("{")
    ? `${name}{worker="${worker}",${rest.slice(1)}`
    : `${name}{worker="${worker}"}${rest}`;
}
