import { Unavailable } from "../../../platform/errors.ts";
import type { StepRun, StepWork } from "./ask.ts";
import { findCommander } from "./commander.ts";
import {
  archiveConversation,
  joinConversation,
  openConversation,
  reopenConversation,
  restrictConversation,
} from "./conversation.ts";
import { bringDocuments } from "./documents.ts";
import { joinGroup, makeGroup } from "./group.ts";
import { proposeParticipants } from "./participants.ts";

const works: Readonly<Record<string, (run: StepRun, slug: string) => Promise<string | undefined>>> = {
  "reported:participants": proposeParticipants,
  "reported:commander": findCommander,
  "reported:documents": bringDocuments,
  "reported:conversation": openConversation,
  "reported:group": makeGroup,
  "joined:conversation": joinConversation,
  "joined:group": joinGroup,
  "closed:conversation": archiveConversation,
  "reopened:conversation": reopenConversation,
  "restricted:conversation": restrictConversation,
};

/** What a step does, by its name: what it follows from, what it does, and with which plugin where there are several. */
export function workOf(step: string): StepWork {
  const [on, what, slug = ""] = step.split(":");
  const work = works[`${on}:${what}`];
  // Of a later release, which has been taken back.
  if (!work) return () => Promise.reject(new Unavailable("This release of svc does not know this step"));
  return (run) => work(run, slug);
}
