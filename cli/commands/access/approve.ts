import { decisionCommand } from "../../access/decision.ts";

export default decisionCommand("approve", "Approve an access request", { takesNote: true });
