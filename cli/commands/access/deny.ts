import { decisionCommand } from "../../access/decision.ts";

export default decisionCommand("deny", "Deny an access request or withdraw its approval", {
  takesNote: true,
});
