import { decisionCommand } from "../../access/decision.ts";

export const approve = decisionCommand("approve", "Approve an access request", { takesNote: true });
export const deny = decisionCommand("deny", "Deny an access request or withdraw its approval", {
  takesNote: true,
});
export const cancel = decisionCommand("cancel", "Cancel your access request or give up its approval");
export const review = decisionCommand("review", "Mark break-glass access as reviewed");
