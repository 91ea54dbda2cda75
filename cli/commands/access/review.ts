import { decisionCommand } from "../../access/decision.ts";

export default decisionCommand("review", "Mark break-glass access as reviewed");
