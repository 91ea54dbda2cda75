import { decisionCommand } from "../../access/decision.ts";

export default decisionCommand("cancel", "Cancel your access request or give up its approval");
