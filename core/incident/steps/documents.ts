import { type StepRun, throwFailures } from "./ask.ts";
import { makeDocuments } from "./make_documents.ts";
import { proposeDocuments } from "./propose_documents.ts";

/** Proposes documents that are there and makes those that the incident is to have. Neither waits for the other. */
export async function bringDocuments(run: StepRun): Promise<string> {
  const [{ proposed, ...first }, { made, ...second }] = await Promise.all([
    proposeDocuments(run),
    makeDocuments(run),
  ]);
  throwFailures([...first.failures, ...second.failures]);
  return `Documents proposed: ${proposed}; made: ${made}`;
}
